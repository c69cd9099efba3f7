//! What events show, field by field: as it was asked for, and as `ContainerStatus` tells it.

#[cfg(test)]
mod tests;

use super::readings::carries;
use super::{Broken, Events, Finding, Holds, Pending};
use crate::case::{KeepsCheck, MessageSizeCheck, SandboxStateCheck};
use crate::history::{
    ContainerSpec, ContainerState, ContainerStatus, Event, EventKind, Labels, Mount, Reply,
    Request, SandboxId, SandboxSpec, SandboxState, SandboxStatus, Seq, Sighting, Subject,
    SubjectKind,
};
use crate::oracle::invariants::broken_by;
use crate::oracle::name_of;

/// What differs: expected, and actual.
type Difference = (String, String);

impl Events<'_> {
    /// Whether each event shows its container as the next `ContainerStatus` does.
    ///
    /// Between the two it may have gone on: then only what never changes must be the same.
    pub(super) fn show_the_status(&self) -> Finding {
        let mut compared = 0;
        for sighting in self.all() {
            let event = sighting.event();
            if event.kind == EventKind::Deleted {
                continue;
            }
            let Some(shown) = event.own_status() else {
                continue;
            };
            let Some((evidence, told)) = self.next_status(sighting) else {
                continue;
            };
            compared += 1;
            let differing = differing(shown, told);
            if let Some((field, shown, told)) = differing {
                return Broken {
                    expected: format!("{field} {told} in {}, as ContainerStatus tells", event.kind),
                    actual: format!("{field} {shown}"),
                    evidence,
                };
            }
        }
        if compared > 0 {
            return Holds;
        }
        let awaited = "a ContainerStatus after one of its events".to_owned();
        let evidence = Vec::new();
        Pending { awaited, evidence }
    }

    fn next_status(&self, after: &Sighting) -> Option<(Vec<Seq>, &ContainerStatus)> {
        self.history.calls().find_map(|call| {
            let (began, ended) = (call.began().seq, call.ended()?.seq);
            match (call.request(), call.result()) {
                (Request::ContainerStatus(id), Some(Ok(Reply::ContainerStatus(report))))
                    if *id == self.subject.id && began > after.seq() =>
                {
                    let status: &ContainerStatus = &report.status;
                    Some((vec![after.seq(), began, ended], status))
                }
                _ => None,
            }
        })
    }

    /// What state of the sandbox the event shows.
    pub(super) fn have_sandbox_state(&self, check: &SandboxStateCheck) -> Finding {
        let Some(sighting) = self.first(check.event) else {
            return self.awaited(check.event);
        };
        let wanted = SandboxState::from(check.is);
        let told = sighting.event().sandbox.as_ref().map(|told| told.state);
        if told == Some(wanted) {
            return Holds;
        }
        Broken {
            expected: format!("the sandbox {wanted} in {}", check.event),
            actual: told.map_or_else(|| "no sandbox".to_owned(), |told| told.to_string()),
            evidence: vec![sighting.seq()],
        }
    }

    /// Whether no message of an event is too large.
    pub(super) fn are_small(&self, check: &MessageSizeCheck) -> Finding {
        let limit = u64::from(check.at_most_kib) << 10;
        let large = self.all().find(|seen| u64::from(seen.bytes()) > limit);
        large.map_or(Holds, |seen| Broken {
            expected: format!(
                "a message of {} with at most {limit} bytes",
                seen.event().kind
            ),
            actual: format!("{} bytes", seen.bytes()),
            evidence: vec![seen.seq()],
        })
    }

    /// Whether a rule of all histories is kept by this subject.
    pub(super) fn keep(&self, check: &KeepsCheck) -> Finding {
        let Some(broken) = broken_by(&check.rule, self.history) else {
            return Broken {
                expected: format!("a rule {}", check.rule),
                actual: "there is none".to_owned(),
                evidence: Vec::new(),
            };
        };
        let own = name_of(self.subject);
        let found = broken.into_iter().find(|found| found.subject == own);
        found.map_or(Holds, |found| Broken {
            expected: found.expected(),
            actual: found.actual(),
            evidence: found.evidence,
        })
    }
}

/// What an event shows otherwise than it was asked for.
pub(super) fn as_asked_for(subject: &Subject, sighting: &Sighting) -> Option<Difference> {
    let event = sighting.event();
    let (sandbox, container) = match &subject.kind {
        SubjectKind::Sandbox(spec) => (spec, None),
        SubjectKind::Container(spec) => (&spec.sandbox_spec, Some(spec)),
        SubjectKind::Stray => return None,
    };
    let told = event.sandbox.as_ref();
    let id = match container {
        Some(spec) => spec.sandbox.as_str(),
        None => subject.id.as_str(),
    };
    let of_sandbox = told.and_then(|told| other_sandbox(id, sandbox, told));
    let of_container = || other_container(container?, event);
    let (expected, actual) = of_sandbox.or_else(of_container)?;
    Some((format!("{expected} in {}", event.kind), actual))
}

fn other_sandbox(id: &str, asked: &SandboxSpec, told: &SandboxStatus) -> Option<Difference> {
    let metadata = told.metadata.clone().unwrap_or_default();
    let handler = match asked.runtime_handler.as_str() {
        // Of the default one a runtime may tell the name or not.
        "" => told.runtime_handler.clone(),
        named => named.to_owned(),
    };
    let fields = [
        ("id", id.to_owned(), told.id.to_string()),
        ("UID", asked.uid.to_string(), metadata.uid.to_string()),
        ("name", asked.name.clone(), metadata.name.to_string()),
        (
            "namespace",
            asked.namespace.clone(),
            metadata.namespace.to_string(),
        ),
        (
            "attempt",
            asked.attempt.to_string(),
            metadata.attempt.to_string(),
        ),
        ("runtime handler", handler, told.runtime_handler.clone()),
    ];
    let other = fields.into_iter().find(|(_, asked, told)| asked != told);
    let other = other.map(|(field, asked, told)| {
        (
            format!("the sandbox's {field} `{asked}`"),
            format!("`{told}`"),
        )
    });
    other
        .or_else(|| other_labels("the sandbox's labels", &asked.labels, &told.labels))
        .or_else(|| {
            let what = "the sandbox's annotations";
            other_annotations(what, &asked.annotations, &told.annotations)
        })
}

fn other_container(asked: &ContainerSpec, event: &Event) -> Option<Difference> {
    let told = event.own_status()?;
    let metadata = told.metadata.clone().unwrap_or_default();
    let (name, attempt) = (asked.name(), asked.attempt);
    if (&*metadata.name, metadata.attempt) != (name, attempt) {
        let actual = format!("`{}`, attempt {}", metadata.name, metadata.attempt);
        return Some((format!("the name `{name}`, attempt {attempt}"), actual));
    }
    other_labels("the labels", &asked.labels, &told.labels)
        .or_else(|| other_annotations("the annotations", &asked.annotations, &told.annotations))
}

impl Events<'_> {
    /// Whether each event between the sandbox's STARTED and its stop shows the addresses that the
    /// sandbox has by its own status, and there are some.
    pub(super) fn tell_the_addresses(&self) -> Finding {
        let sandbox = match &self.subject.kind {
            SubjectKind::Container(spec) => spec.sandbox.clone(),
            SubjectKind::Sandbox(_) | SubjectKind::Stray => {
                SandboxId::from(self.subject.id.as_str())
            }
        };
        let calls = || self.history.calls();
        let ending = calls().find(|call| match call.request() {
            Request::StopSandbox(id) | Request::RemoveSandbox(id) => *id == sandbox,
            _ => false,
        });
        let ending = ending.map(|call| call.began().seq);
        let told = calls().find_map(|call| match (call.request(), call.result()?) {
            (Request::SandboxStatus(id), Ok(Reply::SandboxStatus(report))) if *id == sandbox => {
                let ended = call.ended()?.seq;
                let in_life = ending.is_none_or(|ending| ended < ending);
                in_life.then_some((ended, &report.status.ips))
            }
            _ => None,
        });
        let Some((asked, ips)) = told else {
            return Pending {
                awaited: "a PodSandboxStatus of the running sandbox".to_owned(),
                evidence: Vec::new(),
            };
        };
        let broken = |expected: String, actual: String, evidence| Broken {
            expected,
            actual,
            evidence,
        };
        if ips.is_empty() {
            let expected = "an address in PodSandboxStatus".to_owned();
            return broken(expected, "none".to_owned(), vec![asked]);
        }
        let wrong = self.all().find(|seen| {
            let of_sandbox = self.subject.id.as_str() == sandbox.as_str();
            let too_early = of_sandbox && seen.event().kind == EventKind::Created;
            let in_life = ending.is_none_or(|ending| seen.seq() < ending);
            let shown = seen.event().sandbox.as_ref().map(|status| &status.ips);
            in_life && !too_early && shown != Some(ips)
        });
        let Some(wrong) = wrong else {
            return Holds;
        };
        let event = wrong.event();
        let shown = event.sandbox.as_ref().map(|status| status.ips.join(" "));
        let shown = shown.filter(|shown| !shown.is_empty());
        broken(
            format!("the address {} in {}", ips.join(" "), event.kind),
            shown.unwrap_or_else(|| "none".to_owned()),
            vec![asked, wrong.seq()],
        )
    }
}

/// A runtime may add labels of its own.
fn other_labels(what: &str, asked: &Labels, told: &Labels) -> Option<Difference> {
    if carries(told, asked) {
        return None;
    }
    let mut lost = asked
        .iter()
        .filter(|(key, value)| told.get(*key) != Some(*value));
    let (key, _) = lost.next()?;
    Some((
        format!("{what} as they were given"),
        format!("`{key}` is lost or changed"),
    ))
}

/// The CRI allows no change at all.
fn other_annotations(what: &str, asked: &Labels, told: &Labels) -> Option<Difference> {
    if **asked == **told {
        return None;
    }
    let expected = format!("{what} as they were given");
    let actual = match asked
        .iter()
        .find(|(key, value)| told.get(*key) != Some(*value))
    {
        Some((key, _)) => format!("`{key}` is lost or changed"),
        None => format!("{} more", told.len() - asked.len()),
    };
    Some((expected, actual))
}

/// The first field that two statuses tell otherwise: its name, and both values.
fn differing(
    shown: &ContainerStatus,
    told: &ContainerStatus,
) -> Option<(&'static str, String, String)> {
    let same_state = shown.state == told.state;
    let was_started = shown.state != ContainerState::Created;
    let pairs = fields(shown).into_iter().zip(fields(told));
    let pairs = pairs.chain(details(shown).into_iter().zip(details(told)));
    let mut differing = pairs.filter(|((_, when, shown), (_, _, told))| {
        let counts = match when {
            Changes::Never => true,
            Changes::AtStart => was_started || same_state,
            Changes::WithState => same_state,
        };
        counts && shown != told
    });
    let ((field, _, shown), (_, _, told)) = differing.next()?;
    Some((field, brief(shown), brief(told)))
}

/// When a field of a status may change.
#[derive(Clone, Copy)]
enum Changes {
    Never,
    AtStart,
    WithState,
}

type Field = (&'static str, Changes, String);

/// What a status was given, and as whom it runs: in older histories, nothing.
fn details(status: &ContainerStatus) -> Vec<Field> {
    use Changes::{Never, WithState};
    let Some(details) = &status.details else {
        return Vec::new();
    };
    let mut mounts = details.mounts.clone();
    // The CRI gives them no order.
    mounts.sort_unstable();
    let resources = details.resources.as_ref().map(|set| (**set).clone());
    vec![
        ("mounts", Never, mounts.iter().map(mount).collect()),
        ("log_path", Never, format!("`{}`", details.log_path)),
        ("image_id", Never, format!("`{}`", details.image_id)),
        ("user", WithState, format!("{:?}", details.user)),
        ("resources", WithState, format!("{resources:?}")),
    ]
}

fn mount(mount: &Mount) -> String {
    let Mount {
        container_path,
        host_path,
        readonly,
        recursive_readonly,
        selinux_relabel,
        propagation,
    } = mount;
    let flags = [
        (*readonly, " readonly"),
        (*recursive_readonly, " recursively"),
        (*selinux_relabel, " relabelled"),
    ];
    let flags: String = flags
        .iter()
        .filter(|(has, _)| *has)
        .map(|(_, word)| *word)
        .collect();
    format!("{host_path} at {container_path}{flags} propagation {propagation}; ")
}

fn fields(status: &ContainerStatus) -> [Field; 12] {
    use Changes::{AtStart, Never, WithState};
    let metadata = status.metadata.as_ref();
    let named = metadata.map(|named| format!("`{}`, attempt {}", named.name, named.attempt));
    let labels = |labels: &Labels| format!("{:?}", **labels);
    [
        ("metadata", Never, named.unwrap_or_default()),
        ("created_at", Never, status.created_at.0.to_string()),
        (
            "image",
            Never,
            status.image.clone().unwrap_or_default().to_string(),
        ),
        ("image_ref", Never, status.image_ref.to_string()),
        ("labels", Never, labels(&status.labels)),
        ("annotations", Never, labels(&status.annotations)),
        ("started_at", AtStart, status.started_at.0.to_string()),
        ("finished_at", WithState, status.finished_at.0.to_string()),
        ("exit code", WithState, status.exit_code.to_string()),
        ("reason", WithState, format!("`{}`", status.reason)),
        ("message", WithState, format!("`{}`", status.message)),
        ("state", WithState, status.state.to_string()),
    ]
}

/// A value, cut where it is long.
fn brief(value: String) -> String {
    const SHOWN: usize = 80;
    match value.char_indices().nth(SHOWN) {
        None => value,
        Some((end, _)) => format!("{}… ({} bytes)", &value[..end], value.len()),
    }
}
