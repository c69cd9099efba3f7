//! One RPC of a case: its beginning and its end.

use std::sync::Arc;

use super::{Body, CallFault, ContainerId, Entry, POD_UID_LABEL, PodUid, Reply, Request};

#[derive(Clone, Debug)]
pub struct Call {
    pub(super) began: Arc<Entry>,
    pub(super) ended: Option<Arc<Entry>>,
    /// What was asked with the whole id, where it was asked with the beginning of one.
    whole: Option<Request>,
}

impl Call {
    /// One that began here; `whole` is what was asked with the whole id, if it was not.
    pub(super) fn new(began: Arc<Entry>, whole: Option<Request>) -> Self {
        Self {
            began,
            ended: None,
            whole,
        }
    }

    /// The request, with the full id where the call used a prefix of a container's id.
    pub fn request(&self) -> &Request {
        match &self.began.body {
            Body::CallBegan { request, .. } => self.whole.as_ref().unwrap_or(request),
            _ => unreachable!("a call is only ever made of a CallBegan entry"),
        }
    }

    /// Whether the call is the run's and not the case's.
    pub fn is_of_run(&self) -> bool {
        matches!(self.began.body, Body::CallBegan { case: None, .. })
    }

    /// What it returned; absent while the call is under way.
    pub fn result(&self) -> Option<&Result<Reply, CallFault>> {
        match &self.ended.as_ref()?.body {
            Body::CallEnded { result, .. } => Some(result),
            _ => None,
        }
    }

    /// The entry of its beginning.
    pub fn began(&self) -> &Entry {
        &self.began
    }

    /// The entry of its return; absent while it is under way.
    pub fn ended(&self) -> Option<&Entry> {
        self.ended.as_deref()
    }
}

impl Request {
    /// Whether this lists a pod by the label of its UID, or all pods.
    pub fn lists(&self, pod: &PodUid) -> bool {
        let (Self::ListSandboxes(labels) | Self::ListContainers { labels, .. }) = self else {
            return false;
        };
        let uid = labels.get(POD_UID_LABEL);
        uid.is_none_or(|uid| **uid == *pod.as_str())
    }

    /// The same with the whole id of the container that it starts, stops or removes, if it is not
    /// whole.
    pub(super) fn with_whole_id(
        &self,
        whole: impl Fn(&ContainerId) -> Option<ContainerId>,
    ) -> Option<Self> {
        match self {
            Self::StartContainer(id) => Some(Self::StartContainer(whole(id)?)),
            Self::RemoveContainer(id) => Some(Self::RemoveContainer(whole(id)?)),
            Self::StopContainer { container, grace } => Some(Self::StopContainer {
                container: whole(container)?,
                grace: *grace,
            }),
            _ => None,
        }
    }
}
