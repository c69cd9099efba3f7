//! `same-status`: an event shows its container as the next `ContainerStatus` does.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{
    ContainerState, ContainerStatus, EventArrival, EventKind, Labels, Mount, Seq,
};
use crate::oracle::Source;
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    SameStatusCheck(NameRef)
}

impl Word for SameStatusCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Container);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::NothingObserved, Kind::StatusDiffers]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let mut compared = 0;
        for arrival in events.all() {
            let event = arrival.event();
            if event.kind == EventKind::Deleted {
                continue;
            }
            let Some(shown) = event.own_status() else {
                continue;
            };
            let Some((evidence, answered)) = events.next_status(arrival) else {
                continue;
            };
            compared += 1;
            let differing = differing(shown, answered);
            if let Some((field, shown, answered)) = differing {
                return Broken {
                    mismatch: Mismatch::new(
                        Kind::StatusDiffers,
                        [Fact::FieldValue(answered)],
                        [
                            Fact::Field(field.to_owned()),
                            Fact::FieldValue(shown),
                            Fact::Event(event.kind),
                        ],
                    ),
                    evidence,
                };
            }
        }
        if compared > 0 {
            return Holds;
        }
        Pending {
            missing: Mismatch::unobserved("a ContainerStatus after one of its events"),
            evidence: Vec::new(),
        }
    }
}

impl SubjectEvents<'_, '_> {
    fn next_status(&self, after: &EventArrival) -> Option<(Vec<Seq>, &ContainerStatus)> {
        let mut readings = self.index.readings(&self.subject.id).iter();
        readings.find_map(|reading| match reading.source {
            Source::Status(call, status) if call.began.seq > after.seq() => {
                let evidence = [after.seq()].into_iter().chain(call.evidence());
                Some((evidence.collect(), status))
            }
            _ => None,
        })
    }
}

/// The first field in which two statuses differ: its name, and both values.
fn differing(
    shown: &ContainerStatus,
    answered: &ContainerStatus,
) -> Option<(&'static str, String, String)> {
    let same_state = shown.state == answered.state;
    let was_started = shown.state != ContainerState::Created;
    let pairs = fields(shown).into_iter().zip(fields(answered));
    let pairs = pairs.chain(details(shown).into_iter().zip(details(answered)));
    let mut differing = pairs.filter(|((_, when, shown), (_, _, answered))| {
        let counts = match when {
            Changes::Never => true,
            Changes::AtStart => was_started || same_state,
            Changes::WithState => same_state,
        };
        counts && shown != answered
    });
    let ((field, _, shown), (_, _, answered)) = differing.next()?;
    Some((field, brief(shown), brief(answered)))
}

/// The times at which a field of a status may change.
#[derive(Clone, Copy)]
enum Changes {
    Never,
    AtStart,
    WithState,
}

type Field = (&'static str, Changes, String);

/// The fields of a container's configuration.
fn details(status: &ContainerStatus) -> Vec<Field> {
    use Changes::{Never, WithState};
    let details = &status.setup;
    let mut mounts = details.mounts.clone();
    // The CRI defines no order of mounts.
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

/// A value, truncated if it is long.
fn brief(value: String) -> String {
    const SHOWN: usize = 80;
    match value.char_indices().nth(SHOWN) {
        None => value,
        Some((end, _)) => format!("{}… ({} bytes)", &value[..end], value.len()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::differing;
    use crate::checks::testing::check;
    use crate::history::{ContainerSetup, ContainerStatus, Labels, Mount, Shared, User};
    use crate::oracle::script::history;

    const SAME: &str = "same-status: {of: c}";

    const LIFE: &str = "pod run; c create; c CREATED; c start; c STARTED";

    /// Compares a status with a changed copy, and expects this field to differ.
    #[track_caller]
    fn check_details(change: impl FnOnce(&mut ContainerSetup), expect: Option<&str>) {
        let history = history("pod run; c create; c CREATED");
        let event = history.subjects()[1].arrivals[0].event();
        let mut shown = ContainerStatus::clone(event.own_status().expect("it is shown"));
        let mount = |path: &str| Mount {
            container_path: path.into(),
            ..Mount::default()
        };
        shown.setup = Shared::from(ContainerSetup {
            mounts: vec![mount("/a"), mount("/b")],
            resources: Some(Labels::from([("cpu_shares", "2")])),
            ..ContainerSetup::default()
        });
        let mut answered = shown.clone();
        change(&mut answered.setup);
        let differing = differing(&shown, &answered);
        let found = differing.map(|(field, ..)| field);
        assert_eq!(found, expect);
    }

    #[test]
    fn a_snapshot_equals_the_status() {
        let script = format!("{LIFE}; pod inspect c=running; c STOPPED; pod inspect c=exited; end");
        check(SAME, &script, expect!["holds"]);
    }

    #[test]
    fn a_status_of_a_later_state_has_other_times() {
        check(
            SAME,
            &format!("{LIFE}; pod inspect c=exited:3; end"),
            expect!["holds"],
        );
    }

    #[test]
    fn a_status_of_a_later_state_has_the_same_start() {
        let script = LIFE.replace("STARTED", "STARTED started=+1s");
        check(
            SAME,
            &format!("{script}; pod inspect c=exited:3; end"),
            expect![[r#"
                ORD-01 at #8 #15 #16: c (c.0.beef): expected started_at 1700000000000000001 in STARTED, as ContainerStatus reports: started_at 1700000001000000001
            "#]],
        );
    }

    #[test]
    fn a_snapshot_has_another_exit_code() {
        let script = format!("{LIFE}; c STOPPED exit=2; pod inspect c=exited:1; end");
        check(
            SAME,
            &script,
            expect![[r#"
                ORD-01 at #9 #16 #17: c (c.0.beef): expected exit code 1 in STOPPED, as ContainerStatus reports: exit code 2
            "#]],
        );
    }

    #[test]
    fn a_status_from_before_the_event_or_of_another_container_is_not_compared() {
        for other in [
            "pod inspect c=exited:2; c STOPPED",
            "c STOPPED; pod inspect d=exited:2",
        ] {
            let script = format!("{LIFE}; {other}; pod inspect c=exited:0; end");
            check(SAME, &script, expect!["holds"]);
        }
    }

    #[test]
    fn a_snapshot_has_no_image() {
        let script = "pod run; c create; c CREATED status-lacks=image; pod inspect c=running; end";
        check(
            SAME,
            script,
            expect![[r#"
                ORD-01 at #5 #12 #13: c (c.0.beef): expected image workload in CREATED, as ContainerStatus reports: image 
            "#]],
        );
    }

    #[test]
    fn details_are_compared_one_by_one() {
        check_details(|_| {}, None);
        check_details(|answered| answered.mounts.reverse(), None);
        check_details(
            |answered| answered.mounts[0].readonly = true,
            Some("mounts"),
        );
        check_details(|answered| drop(answered.mounts.pop()), Some("mounts"));
        check_details(
            |answered| answered.log_path = "/log".into(),
            Some("log_path"),
        );
        check_details(
            |answered| answered.image_id = "sha256:1".into(),
            Some("image_id"),
        );
        check_details(
            |answered| answered.user = Some(User::default()),
            Some("user"),
        );
        check_details(|answered| answered.resources = None, Some("resources"));
    }

    #[test]
    fn a_status_without_details_is_of_an_older_history() {
        let script = "pod run; c create; c CREATED; pod inspect c=created; end";
        check(SAME, script, expect!["holds"]);
    }

    #[test]
    fn without_a_status_the_check_waits() {
        check(
            SAME,
            &format!("{LIFE}; end"),
            expect![[r#"
        waits for a ContainerStatus after one of its events of c
        ORD-01 at: c (c.0.beef): expected a ContainerStatus after one of its events: it has not come
    "#]],
        );
    }
}
