//! Watches of the model through a relay with defects, judged with what is known of real runtimes.

use super::flaws::Flaw;
use super::scenarios::watched;
use crate::run::Exit;

/// The defects that a relay makes of a right runtime, each with the reason why a kubelet of the
/// profile `hint` does not see it, if that is so. The profile `observer` has no rule of a watch.
const RELAYED: [(&str, &str); 10] = [
    ("drop-created", ""),
    ("drop-started", ""),
    ("drop-stopped", ""),
    ("drop-deleted", ""),
    ("repeat-stopped", "it relists the pod twice"),
    ("no-sandbox", ""),
    ("deleted-before-stopped", ""),
    ("stopped-before-started", ""),
    ("created-at-goes-back", "it does not read created_at"),
    ("late-stopped", ""),
];

/// Neither excused by what containerd or CRI-O are known to fail.
#[test]
fn what_a_relay_does_to_events_is_noticed_by_each_profile_that_it_harms() {
    let script = "run a; 3s; crash a; 10s; run b; 3s; crash b; crash b; 10s; remove a; remove b";
    let mut wrong = Vec::new();
    for flaw in [Flaw::Containerd, Flaw::Crio] {
        let mut check = |defect: Option<&str>, profile, expected| {
            let args = format!("--for 60s --expectations builtin --profile {profile}");
            let (exit, report) = watched(flaw, defect.as_slice(), &args, script);
            if exit != expected {
                let runtime = &report["runtime"]["name"];
                wrong.push(format!("{defect:?} of {runtime} for {profile}: {exit:?}"));
            }
        };
        for profile in ["cache", "hint"] {
            check(None, profile, Exit::Conformant);
        }
        for (defect, unseen_as) in RELAYED {
            check(Some(defect), "cache", Exit::NonConformant);
            let of_hint = match unseen_as {
                "" => Exit::NonConformant,
                _ => Exit::Conformant,
            };
            check(Some(defect), "hint", of_hint);
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_bound_that_was_not_asked_for_is_not_spoken_of() {
    let script = "run a; 3 * crash a, 2s; remove a; run b; 3 * crash b, 2s; remove b";
    let speaks = |args: &str| {
        let defects = ["deleted-before-stopped"];
        let (exit, report) = watched(Flaw::Containerd, &defects, args, script);
        assert_eq!(exit, Exit::NonConformant);
        let words = ["than chance explains", "are known to"];
        words.map(|words| report.to_string().contains(words))
    };
    assert_eq!(speaks("--for 60s"), [false; 2]);
    assert_eq!(speaks("--for 60s --expectations builtin"), [true; 2]);
}
