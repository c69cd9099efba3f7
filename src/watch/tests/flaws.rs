//! Broken lists and statuses of the model.

use std::time::Duration;

use crate::history::{CallFault, ContainerMetadata, ContainerState, Reply, Request, StatusCode};
use crate::model::{Answer, Behaviour};

#[derive(Clone, Copy)]
pub(super) enum Flaw {
    None,
    ListsFail,
    ListsTake6s,
    /// Lists of containers have 6 MB.
    LongLists,
    /// Hangs the status of containers called `stuck`.
    StatusHangs,
    /// Containers called `lost` are UNKNOWN after their exit, those called `stray` always.
    Unknown,
    /// Nothing is broken, but the model calls itself containerd or CRI-O.
    Containerd,
    Crio,
}

impl Flaw {
    pub(super) fn behaviour(self) -> Behaviour {
        let hook: Option<fn(&Request, &mut Answer)> = match self {
            Self::None => None,
            Self::ListsFail => Some(lists_fail),
            Self::ListsTake6s => Some(lists_take_6s),
            Self::LongLists => Some(long_lists),
            Self::StatusHangs => Some(status_hangs),
            Self::Unknown => Some(unknown),
            Self::Containerd => Some(|_, answer| called(answer, "containerd", "v2.1.9")),
            Self::Crio => Some(|_, answer| called(answer, "cri-o", "1.36.3")),
        };
        Behaviour {
            replies: hook.into_iter().collect(),
            ..Behaviour::default()
        }
    }
}

fn called(answer: &mut Answer, name: &str, version: &str) {
    if let Ok(Reply::Version(runtime)) = &mut answer.result {
        name.clone_into(&mut runtime.runtime_name);
        version.clone_into(&mut runtime.runtime_version);
    }
}

fn lists_fail(request: &Request, answer: &mut Answer) {
    if matches!(request, Request::ListContainers { .. }) {
        answer.result = Err(CallFault {
            code: StatusCode(13),
            message: "no list today".to_owned(),
            deadline: Duration::ZERO,
        });
    }
}

fn lists_take_6s(request: &Request, answer: &mut Answer) {
    let lists = matches!(
        request,
        Request::ListContainers { .. } | Request::ListSandboxes { .. }
    );
    if lists {
        answer.after = Some(Duration::from_secs(6));
    }
}

fn long_lists(_: &Request, answer: &mut Answer) {
    if let Ok(Reply::Containers(listed)) = &mut answer.result {
        for item in listed {
            item.image = Some("x".repeat(3 << 20).into());
        }
    }
}

fn status_hangs(_: &Request, answer: &mut Answer) {
    if let Ok(Reply::ContainerStatus(report)) = &answer.result {
        let metadata = report.status.metadata.as_ref();
        if metadata.is_some_and(|metadata| &*metadata.name == "stuck") {
            answer.after = None;
        }
    }
}

fn unknown(_: &Request, answer: &mut Answer) {
    let shown = |metadata: Option<&ContainerMetadata>, state| match metadata {
        Some(own) if &*own.name == "stray" => ContainerState::Unknown(3),
        Some(own) if &*own.name == "lost" && state == ContainerState::Exited => {
            ContainerState::Unknown(3)
        }
        _ => state,
    };
    match &mut answer.result {
        Ok(Reply::ContainerStatus(report)) => {
            let state = report.status.state;
            report.status.state = shown(report.status.metadata.as_ref(), state);
        }
        Ok(Reply::Containers(listed)) => {
            for listed in listed {
                listed.state = shown(listed.metadata.as_ref(), listed.state);
            }
        }
        _ => {}
    }
}
