//! The state of a container in relists, and the event that must have reported it.

use super::fields::Message;
use super::index::Index;
use super::objects::Object;
use crate::history::{ContainerListing, ContainerState, Entry, EventKind, Request, Seq, Subject};

/// One listing of a container's sandbox.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relist<'a> {
    pub(crate) began: &'a Entry,
    pub(crate) ended: &'a Entry,
    listing: Option<&'a ContainerListing>,
}

impl Relist<'_> {
    /// The events that report the container's change from its state in one relist to that in the
    /// next, if one stream was live; and that state.
    pub(crate) fn announced_since(&self, before: &Self) -> (&'static str, &'static [EventKind]) {
        use ContainerState::{Created, Exited, Running, Unknown};
        use EventKind as Kind;

        let states = [before, self].map(|relist| relist.listing.map(|listing| listing.state));
        let needed: &[EventKind] = match states {
            [None, Some(Created)] => &[Kind::Created],
            [None, Some(Running)] => &[Kind::Created, Kind::Started],
            [None, Some(Exited)] => &[Kind::Created, Kind::Stopped],
            [Some(Created), Some(Running)] => &[Kind::Started],
            [Some(Created | Running), Some(Exited)] | [Some(Running), Some(Unknown(_))] => {
                &[Kind::Stopped]
            }
            [Some(Running), None] => &[Kind::Stopped, Kind::Deleted],
            [Some(Created | Exited), None] => &[Kind::Deleted],
            _ => &[],
        };
        let shown = self.announcement().map(|(shown, _)| shown);
        (shown.unwrap_or("shows it UNKNOWN"), needed)
    }

    /// Whether it shows only UNKNOWN or undefined states.
    pub(crate) fn is_unknown(&self) -> bool {
        let state = self.listing.map(|listing| listing.state);
        matches!(state, Some(ContainerState::Unknown(_)))
    }

    /// The state that it shows, and the event that announces it; `None` if no event does.
    pub(crate) fn announcement(&self) -> Option<(&'static str, EventKind)> {
        match self.listing.map(|listing| listing.state) {
            None => Some(("does not show it", EventKind::Deleted)),
            Some(ContainerState::Created) => Some(("shows it CREATED", EventKind::Created)),
            Some(ContainerState::Running) => Some(("shows it RUNNING", EventKind::Started)),
            Some(ContainerState::Exited) => Some(("shows it EXITED", EventKind::Stopped)),
            Some(ContainerState::Unknown(_)) => None,
        }
    }
}

/// The listings of the subject's sandbox that began after the subject's creation and before the
/// teardown, in order.
pub(crate) fn relists_of<'a>(
    index: &Index<'a>,
    subject: &Subject,
) -> impl DoubleEndedIterator<Item = Relist<'a>> + use<'a> {
    let history = index.history;
    let object = index.object(&subject.id);
    let made = match object.and_then(|object| object.creation) {
        // Others may have created it at any time.
        None => history.is_of_foreign_pod().then(Seq::default),
        Some(call) => call.ended().map(|entry| entry.seq),
    };
    let answers = object.map(Object::answers).unwrap_or_default().into_iter();
    answers.filter_map(move |(call, ended, said)| {
        let began = call.began();
        let is_list = matches!(call.request(), Request::ListContainers { .. });
        let in_time = made.is_some_and(|made| began.seq > made) && history.within_steps(ended.seq);
        let listing = match said.ok()? {
            Some(Message::Item(item)) => Some(item),
            Some(_) => return None,
            None => None,
        };
        (is_list && in_time).then_some(Relist {
            began,
            ended,
            listing,
        })
    })
}
