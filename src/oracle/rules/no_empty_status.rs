//! INV-07: the fields that each container status must have.

use crate::history::{ContainerStatus, Seq, Subject};
use crate::oracle::index::{Index, Reading, Source};
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-07",
    name: "invariant::no-empty-status",
    sentence: "Every container status in an event has an id, metadata, an image, a creation time \
                   and an image_ref, which is the same in all statuses of the container.",
    source: "cri-o#9663: a kubelet crashes on a status without an image; toKubeContainerStatus: \
                 image_ref is the imageID of a pod's status",
    requirements: &["R16"],
    kinds: &[Kind::IncompleteStatus, Kind::ImageRefChanged],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check,
};

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let mut broken = rule.on_each_event(index.history, |_, arrival| {
        let event = arrival.event();
        event
            .containers
            .iter()
            .enumerate()
            .find_map(|(place, status)| {
                let lacking = lacking(status)?;
                let place = i64::try_from(place).unwrap_or(i64::MAX);
                Some(Mismatch::new(
                    Kind::IncompleteStatus,
                    [],
                    [
                        Fact::Event(event.kind),
                        Fact::Field(lacking.to_owned()),
                        Fact::Place(place),
                    ],
                ))
            })
    });
    broken.extend(changed_image_refs(rule, index));
    broken
}

/// Finds containers whose statuses do not all have the same `image_ref`. A status in an event
/// without one breaks the other half of this rule.
fn changed_image_refs(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let changed = |subject: &Subject| {
        let readings = index.readings(&subject.id).iter();
        let mut refs: Vec<(&str, Seq)> = readings.filter_map(image_ref).collect();
        refs.sort_by_key(|(_, seq)| *seq);
        let mut refs = refs.into_iter();
        let (first, shown) = refs.next()?;
        let (other, seq) = refs.find(|(other, _)| *other != first)?;
        let value = |value: &str| [Fact::FieldValue(value.to_owned())];
        let mismatch = Mismatch::new(Kind::ImageRefChanged, value(first), value(other));
        Some(rule.violation(name_of(subject), mismatch, vec![shown, seq]))
    };
    let subjects = index.history.subjects().iter();
    subjects.filter_map(changed).collect()
}

/// The `image_ref` of a reading, and its entry.
fn image_ref<'a>(reading: &Reading<'a>) -> Option<(&'a str, Seq)> {
    match reading.source {
        Source::Status(call, status) => Some((&*status.image_ref, call.ended.seq)),
        Source::Event(arrival, status) => {
            let is_set = !status.image_ref.is_empty();
            is_set.then(|| (&*status.image_ref, arrival.seq()))
        }
        Source::Start(_) | Source::List(_) => None,
    }
}

fn lacking(status: &ContainerStatus) -> Option<&'static str> {
    if status.id.as_str().is_empty() {
        Some("id")
    } else if status.metadata.is_none() {
        Some("metadata")
    } else if status.image.is_none() {
        Some("image")
    } else if status.image_ref.is_empty() {
        Some("image_ref")
    } else if status.created_at.0 == 0 {
        Some("created_at")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::oracle::rules::testing::{after_create, check_all};

    #[test]
    fn a_status_without_an_id_is_reported() {
        check_all(
            "pod run; c create; c CREATED status-lacks=id",
            expect![[r#"
                INV-07 at #5: c (c.0.beef): expected an id, metadata, an image, its reference and created_at in each status: status 0 of CREATED has no id
                INV-14 at #5: c (c.0.beef): expected one status of it among the 1 in CREATED: it is missing from CREATED
                INV-27 at #5: c (c.0.beef): expected a state in which it was between the cause and the arrival of CREATED of c: absent, which was over before
            "#]],
        );
    }

    #[test]
    fn a_status_without_metadata_is_reported() {
        check_all(
            "pod run; c create; c CREATED status-lacks=metadata",
            expect![[r#"
            INV-07 at #5: c (c.0.beef): expected an id, metadata, an image, its reference and created_at in each status: status 0 of CREATED has no metadata
        "#]],
        );
    }

    #[test]
    fn a_status_without_an_image_is_reported() {
        check_all(
            "pod run; c create; c CREATED status-lacks=image",
            expect![[r#"
            INV-07 at #5: c (c.0.beef): expected an id, metadata, an image, its reference and created_at in each status: status 0 of CREATED has no image
            INV-13 at #5: c (c.0.beef): expected a kubelet takes the event: the kubelet panics: the status of container c.0.beef has no image, and the kubelet dereferences it
        "#]],
        );
    }

    #[test]
    fn a_status_without_a_time_is_reported() {
        check_all(
            "pod run; c create; c CREATED status-lacks=time",
            expect![[r#"
            INV-07 at #5: c (c.0.beef): expected an id, metadata, an image, its reference and created_at in each status: status 0 of CREATED has no created_at
        "#]],
        );
    }

    #[test]
    fn no_status_at_all_is_no_empty_one() {
        check_all(
            "pod run; c create; c CREATED missing",
            expect![[r#"
                INV-14 at #5: c (c.0.beef): expected one status of it among the 0 in CREATED: it is missing from CREATED
                INV-24 at #5: c (c.0.beef): expected a container in CREATED, as one is there: the snapshot of CREATED is empty
                INV-27 at #5: c (c.0.beef): expected a state in which it was between the cause and the arrival of CREATED of c: absent, which was over before
            "#]],
        );
    }

    #[test]
    fn the_image_has_a_reference() {
        after_create("c STARTED", expect![]);
        after_create(
            "c STARTED ref=",
            expect![[r#"
            INV-07 at #6: c (c.0.beef): expected an id, metadata, an image, its reference and created_at in each status: status 0 of STARTED has no image_ref
        "#]],
        );
    }

    #[test]
    fn the_reference_of_the_image_stays() {
        after_create("c STARTED; pod inspect c=running; c STOPPED", expect![]);
        after_create(
            "c STARTED; c STOPPED ref=sha256:f00d",
            expect![[r#"
            INV-07 at #5 #7: c (c.0.beef): expected image_ref `sha256:beef`, as was shown first: image_ref `sha256:f00d`
        "#]],
        );
        after_create(
            "c STARTED; d create; d CREATED ref=sha256:f00d",
            expect![[r#"
            INV-27 at #9: c (c.0.beef): expected a state in which it was between the cause and the arrival of CREATED of d: RUNNING, which began later
        "#]],
        );
        check_all(
            "pod run; c create; c CREATED ref=sha256:f00d; pod inspect c=created",
            expect![[r#"
            INV-07 at #5 #13: c (c.0.beef): expected image_ref `sha256:f00d`, as was shown first: image_ref `sha256:beef`
        "#]],
        );
    }
}
