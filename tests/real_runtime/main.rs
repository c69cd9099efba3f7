//! Runs of the built program against a real containerd: for any end of a run, nothing of it is left
//! at the runtime, and a foreign pod is unchanged.
//!
//! The runtimes come from `ci/test`, through the environment:
//!
//! * `CRI_TEST_ENDPOINT`: containerd 2.x, which other tests share;
//! * `CRI_TEST_CONTAINERD_CTL`: the path of `ci/containerd`, to start more of them for the tests
//!   that restart one, or remove all pods;
//! * `CRI_TEST_CRIO_BIN`: programs for the `ci/crio` beside it, not set by `ci/test`;
//! * `CRI_TEST_ENDPOINT_1_6`: containerd 1.6, which has no events;
//! * `CRI_TEST_PROMETHEUS`: the directory of `prometheus` and `promtool`.
//!
//! A test without its runtime is shown as ignored, with the reason. For this the file has its own
//! `main`.

#![expect(clippy::unwrap_used, reason = "all of this is a test, its helpers too")]

mod doctor;
#[path = "../support/logs.rs"]
mod logs;
mod neighbours;
mod node;
mod standin;
#[path = "../support/suite.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest")]
mod suite;
mod tests;
mod watch;

use libtest_mimic::{Arguments, Completion, Trial};

/// The requirement of a test.
#[derive(Clone, Copy, Debug)]
enum Needs {
    /// A shared containerd.
    Shared,
    /// A separate containerd.
    Own,
    /// A separate CRI-O.
    Crio,
    /// A containerd without events.
    Old,
    /// A shared containerd, and a Prometheus.
    Prometheus,
}

type Test = (&'static str, Needs, fn(&node::Node));

macro_rules! tests {
    ($($needs:ident: $($name:ident)*;)*) => {
        &[$($((stringify!($name), Needs::$needs, tests::$name),)*)*]
    };
}

const TESTS: &[Test] = tests! {
    Shared:
        a_run_leaves_nothing_and_its_reports_agree
        a_run_is_judged_again_from_its_history_to_the_same_reports
        a_run_in_json_prints_nothing_but_json
        sigint_ends_a_run_in_an_orderly_way
        sigterm_ends_a_run_in_an_orderly_way
        a_second_sigint_leaves_at_once_and_cleanup_does_the_rest
        an_output_that_nobody_reads_ends_a_run_in_an_orderly_way
        a_panic_in_a_case_is_an_error_of_that_case_alone
        a_panic_in_judging_a_case_is_an_error_of_that_case_alone
        a_kept_pod_stays_until_it_is_cleaned_up
        two_runs_at_once_judge_each_its_own
        pods_of_others_change_no_verdict_and_are_left_alone
        a_watch_ends_when_nobody_reads_it
        the_doctor_finds_events;
    Own:
        cleanup_removes_what_a_killed_run_left_and_no_run_that_goes_on
        a_runtime_that_is_killed_and_comes_back_is_cleaned_up
        a_runtime_is_restarted_under_pods_of_others_only_where_that_is_allowed
        a_watch_sees_the_pods_of_others_and_outlives_its_runtime
        a_watch_beside_a_kubelet_raises_no_false_alarm_and_misses_no_loss;
    Crio:
        a_watch_beside_a_kubelet_raises_no_false_alarm_and_misses_no_loss;
    Old:
        a_runtime_without_events_is_reported_and_left_clean
        a_runtime_without_events_cannot_be_watched
        the_doctor_finds_a_runtime_without_events;
    Prometheus:
        prometheus_takes_the_metrics_as_a_kubelets
        a_run_serves_the_metrics_of_its_relists;
};

fn main() -> std::process::ExitCode {
    let trials = TESTS.iter().map(|&(name, needs, test)| {
        Trial::ignorable_test(name, move || {
            Ok(match node::Node::find(needs) {
                Ok(node) => {
                    node.next_to_a_foreign_pod(test);
                    Completion::Completed
                }
                Err(missing) => Completion::ignored_with(format!("not run: set {missing}")),
            })
        })
        .with_kind(format!("{needs:?}").to_lowercase())
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
