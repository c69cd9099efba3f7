//! `matches-spec`: every event shows the sandbox and the container as their creation requested.

use super::labels::carries;
use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::{Finding, Word};
use crate::history::{
    ContainerSpec, Event, EventArrival, Labels, SandboxSpec, SandboxStatus, Subject, SubjectKind,
};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    MatchesSpecCheck(NameRef)
}

impl Word for MatchesSpecCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::DiffersFromSpec]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        events.each(difference)
    }
}

/// A field that differs, and its values.
#[derive(Debug, PartialEq)]
struct Difference {
    field: String,
    expected: String,
    actual: String,
}

/// The first difference between an event's snapshot and the spec of the creation.
fn difference(subject: &Subject, arrival: &EventArrival) -> Option<Mismatch> {
    let event = arrival.event();
    let (sandbox, container) = match &subject.kind {
        SubjectKind::Sandbox(spec) => (spec, None),
        SubjectKind::Container(spec) => (&spec.sandbox_spec, Some(spec)),
        SubjectKind::Stray => return None,
    };
    let reported = event.sandbox.as_ref();
    let id = match container {
        Some(spec) => spec.sandbox.as_str(),
        None => subject.id.as_str(),
    };
    let of_sandbox = reported.and_then(|reported| other_sandbox(id, sandbox, reported));
    let of_container = || other_container(container?, event);
    let Difference {
        field,
        expected,
        actual,
    } = of_sandbox.or_else(of_container)?;
    let field = Fact::Field(field);
    Some(Mismatch::new(
        Kind::DiffersFromSpec,
        [Fact::FieldValue(expected)],
        [field, Fact::FieldValue(actual), Fact::Event(event.kind)],
    ))
}

fn other_sandbox(id: &str, spec: &SandboxSpec, reported: &SandboxStatus) -> Option<Difference> {
    let metadata = reported.metadata.clone().unwrap_or_default();
    let handler = match spec.runtime_handler.as_str() {
        // A runtime may report the name of the default handler or not.
        "" => reported.runtime_handler.clone(),
        named => named.to_owned(),
    };
    let fields = [
        ("id", id.to_owned(), reported.id.to_string()),
        ("UID", spec.uid.to_string(), metadata.uid.to_string()),
        ("name", spec.name.clone(), metadata.name.to_string()),
        (
            "namespace",
            spec.namespace.clone(),
            metadata.namespace.to_string(),
        ),
        (
            "attempt",
            spec.attempt.to_string(),
            metadata.attempt.to_string(),
        ),
        ("runtime handler", handler, reported.runtime_handler.clone()),
    ];
    let other = fields
        .into_iter()
        .find(|(_, spec, reported)| spec != reported);
    let other = other.map(|(field, spec, reported)| Difference {
        field: format!("the sandbox's {field}"),
        expected: format!("`{spec}`"),
        actual: format!("`{reported}`"),
    });
    other
        .or_else(|| other_labels("the sandbox's labels", &spec.labels, &reported.labels))
        .or_else(|| {
            let what = "the sandbox's annotations";
            other_annotations(what, &spec.annotations, &reported.annotations)
        })
}

fn other_container(spec: &ContainerSpec, event: &Event) -> Option<Difference> {
    let reported = event.own_status()?;
    let metadata = reported.metadata.clone().unwrap_or_default();
    let (name, attempt) = (spec.name(), spec.attempt);
    if (&*metadata.name, metadata.attempt) != (name, attempt) {
        return Some(Difference {
            field: "the name".to_owned(),
            expected: format!("`{name}`, attempt {attempt}"),
            actual: format!("`{}`, attempt {}", metadata.name, metadata.attempt),
        });
    }
    other_labels("the labels", &spec.labels, &reported.labels)
        .or_else(|| other_annotations("the annotations", &spec.annotations, &reported.annotations))
}

/// The difference of labels. A runtime may add its own labels.
fn other_labels(what: &str, spec: &Labels, reported: &Labels) -> Option<Difference> {
    if carries(reported, spec) {
        return None;
    }
    let mut lost = spec
        .iter()
        .filter(|(key, value)| reported.get(*key) != Some(*value));
    let (key, _) = lost.next()?;
    Some(Difference {
        field: what.to_owned(),
        expected: "as they were given".to_owned(),
        actual: format!("`{key}` is lost or changed"),
    })
}

/// The difference of annotations. The CRI permits no change.
fn other_annotations(what: &str, spec: &Labels, reported: &Labels) -> Option<Difference> {
    if **spec == **reported {
        return None;
    }
    let actual = match spec
        .iter()
        .find(|(key, value)| reported.get(*key) != Some(*value))
    {
        Some((key, _)) => format!("`{key}` is lost or changed"),
        None => format!("{} more", reported.len() - spec.len()),
    };
    Some(Difference {
        field: what.to_owned(),
        expected: "as they were given".to_owned(),
        actual,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{other_annotations, other_labels};
    use crate::checks::testing::check;
    use crate::history::Labels;

    #[test]
    fn an_event_shows_another_name() {
        let script = "pod run; c create; c CREATED; end";
        check(
            "matches-spec: {of: c}",
            script,
            expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected the name `c`, attempt 0 in CREATED: ``, attempt 0
    "#]],
        );
    }

    #[test]
    fn an_event_shows_another_pods_name() {
        let script = "pod run; pod STARTED pod-name=other; end";
        check(
            "matches-spec: {of: pod}",
            script,
            expect![[r#"
        ORD-01 at #3: pod (pod.0.beef): expected the sandbox's name `` in STARTED: `other`
    "#]],
        );
        check(
            "matches-spec: {of: pod}",
            "pod run; pod STARTED; end",
            expect!["holds"],
        );
    }

    #[test]
    fn labels_may_be_more_and_annotations_may_not() {
        let labels = |pairs: &[(&str, &str)]| -> Labels {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        let (spec, more) = (labels(&[("a", "1")]), labels(&[("a", "1"), ("b", "2")]));
        let other = labels(&[("a", "2")]);
        assert_eq!(other_labels("labels", &spec, &more), None);
        assert!(other_labels("labels", &spec, &other).is_some());
        let actual =
            |reported| other_annotations("annotations", &spec, reported).map(|it| it.actual);
        assert_eq!(actual(&more).as_deref(), Some("1 more"));
        assert_eq!(actual(&other).as_deref(), Some("`a` is lost or changed"));
        assert_eq!(actual(&spec), None);
    }
}
