//! The bare calls of a recorded run, as sent by `ci/bench overhead`: the pauses between them are as
//! long as the recorded waits.

mod recording;
#[path = "../../benches/overhead/script.rs"]
mod script;

use recording::{CASE, entries};
use script::{Recorded, chains, is_about_sandbox, most_at_once, scripts};

/// Each call and the pause before it, in milliseconds: `StartContainer+0`.
#[track_caller]
fn pauses(script: &str) -> String {
    let scripts = scripts(&entries(script));
    let [script] = &scripts[..] else {
        panic!("one case, and not {}", scripts.len());
    };
    assert_eq!(script.case, CASE);
    let call = |call: &Recorded| format!("{}+{}", call.request.method(), call.pause.as_millis());
    let calls: Vec<_> = script.calls.iter().map(call).collect();
    calls.join(" ")
}

#[test]
fn a_life_that_ends_by_itself_takes_its_time() {
    let shown = pauses("pod run; c create; c start; pass 1s; c STOPPED; pass 2s; c remove");
    assert_eq!(
        shown,
        "RunPodSandbox+0 CreateContainer+0 StartContainer+0 RemoveContainer+1001"
    );
}

#[test]
fn what_the_suite_does_between_two_calls_is_not_waited_for() {
    let shown =
        pauses("pod run; c create; c start begins; c STARTED; c start returns; pass 2s; c stop");
    assert_eq!(
        shown,
        "RunPodSandbox+0 CreateContainer+0 StartContainer+0 StopContainer+0"
    );
}

#[test]
fn another_container_is_nothing_to_wait_for() {
    let shown =
        pauses("pod run; c create; d create; c start; d start; pass 1s; d STOPPED; c remove");
    assert!(shown.ends_with("RemoveContainer+0"), "{shown}");
}

#[test]
fn a_sandboxs_call_waits_for_all_its_containers() {
    let shown = pauses("pod run; c create; c start; pass 1s; c STOPPED; pass 1s; pod stop");
    assert!(shown.ends_with("StopPodSandbox+1001"), "{shown}");
}

#[test]
fn what_others_do_is_nothing_to_wait_for() {
    let shown = pauses("pod run; pass 1s; other.0.beef STOPPED id=foreign; pass 1s; pod stop");
    assert!(shown.ends_with("StopPodSandbox+0"), "{shown}");
}

#[test]
fn a_time_in_which_nothing_may_come_passes_before_any_call() {
    let quiet = "pass 5s; wait met the_end_of_5s_without_an_event";
    let shown = pauses(&format!(
        "pod run; c create; {quiet}; c start; {quiet}; d create"
    ));
    assert_eq!(
        shown,
        "RunPodSandbox+0 CreateContainer+0 StartContainer+5001 CreateContainer+5001"
    );
}

#[test]
fn an_event_that_never_came_was_waited_for_in_vain() {
    let wait =
        |how| format!("pod run; c create; pass 10s; wait {how} STOPPED_of_c_(c.0.beef); c remove");
    assert!(pauses(&wait("in-vain")).ends_with("RemoveContainer+10001"));
    assert!(
        pauses(&wait("met")).ends_with("RemoveContainer+0"),
        "its event is waited for"
    );
}

#[test]
fn containers_are_as_many_at_once_as_they_were() {
    let at_once = |script: &str| {
        let script = scripts(&entries(script)).remove(0);
        let calls = script.calls.into_iter();
        let chains = chains(
            calls
                .filter(|call| !is_about_sandbox(&call.request))
                .collect(),
        );
        (chains.len(), most_at_once(&chains))
    };
    assert_eq!(
        at_once("pod run; c create; c remove; d create; d remove"),
        (2, 1)
    );
    assert_eq!(
        at_once("pod run; c create; d create; c remove; d remove"),
        (2, 2)
    );
}
