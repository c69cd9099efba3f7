//! `matches-spec`: every event shows the sandbox and the container as they were asked for.

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
    /// The check `matches-spec`.
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

    fn assess(&self, events: &SubjectEvents<'_>) -> Finding {
        events.each(difference)
    }
}

/// What differs: which field, and its values.
#[derive(Debug, PartialEq)]
struct Difference {
    field: String,
    expected: String,
    actual: String,
}

/// What an event shows otherwise than it was asked for.
fn difference(subject: &Subject, arrival: &EventArrival) -> Option<Mismatch> {
    let event = arrival.event();
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
    let other = other.map(|(field, asked, told)| Difference {
        field: format!("the sandbox's {field}"),
        expected: format!("`{asked}`"),
        actual: format!("`{told}`"),
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
        return Some(Difference {
            field: "the name".to_owned(),
            expected: format!("`{name}`, attempt {attempt}"),
            actual: format!("`{}`, attempt {}", metadata.name, metadata.attempt),
        });
    }
    other_labels("the labels", &asked.labels, &told.labels)
        .or_else(|| other_annotations("the annotations", &asked.annotations, &told.annotations))
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
    Some(Difference {
        field: what.to_owned(),
        expected: "as they were given".to_owned(),
        actual: format!("`{key}` is lost or changed"),
    })
}

/// The CRI allows no change at all.
fn other_annotations(what: &str, asked: &Labels, told: &Labels) -> Option<Difference> {
    if **asked == **told {
        return None;
    }
    let actual = match asked
        .iter()
        .find(|(key, value)| told.get(*key) != Some(*value))
    {
        Some((key, _)) => format!("`{key}` is lost or changed"),
        None => format!("{} more", told.len() - asked.len()),
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
    fn an_event_shows_what_was_asked_for() {
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
        let (asked, more) = (labels(&[("a", "1")]), labels(&[("a", "1"), ("b", "2")]));
        let other = labels(&[("a", "2")]);
        assert_eq!(other_labels("labels", &asked, &more), None);
        assert!(other_labels("labels", &asked, &other).is_some());
        let told = |told| other_annotations("annotations", &asked, told).map(|it| it.actual);
        assert_eq!(told(&more).as_deref(), Some("1 more"));
        assert_eq!(told(&other).as_deref(), Some("`a` is lost or changed"));
        assert_eq!(told(&asked), None);
    }
}
