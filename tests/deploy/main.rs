//! The files beside the suite: the alerts and the dashboard of `ci/monitoring`, the jobs and
//! manifests of `ci/integrations`, the submitted reports in `ci/reports`, and the downloads of
//! `ci/lib`.
//!
//! `ci/test` names the directory of `promtool` by `CRI_TEST_PROMETHEUS`; without it the tests that
//! need `promtool` are shown as ignored.

#![expect(clippy::unwrap_used, reason = "all of this is a test, its helpers too")]

mod debian;
mod github;
mod kubernetes;
mod monitoring;
mod options;
mod submitted;

use std::path::Path;

use libtest_mimic::{Arguments, Completion, Trial};

macro_rules! tests {
    ($($module:ident: $($name:ident)*;)*) => {
        &[$($((stringify!($name), $module::$name),)*)*]
    };
}

const PLAIN: &[(&str, fn())] = tests! {
    debian:
        libraries_that_are_there_are_not_written_again;
    github:
        the_action_runs_the_suite_and_passes_its_verdict_on
        the_policy_of_the_action_decides
        an_input_of_the_action_is_never_code;
    kubernetes:
        a_job_has_a_pod_for_each_node
        manifests_have_only_fields_that_kubernetes_knows
        a_misspelt_field_is_noticed
        the_plugins_are_what_sonobuoy_expects
        a_plugin_that_stops_kubelets_runs_on_one_drained_node
        the_job_of_prow_has_a_pod_and_a_script;
    monitoring:
        every_metric_is_one_that_somebody_serves
        the_names_in_a_query_are_found
        every_alert_has_a_test_that_fires_and_one_that_does_not
        the_page_explains_every_alert_and_no_other
        the_dashboard_is_laid_out_without_overlaps;
    options:
        every_command_of_the_integrations_is_one_of_the_suite
        an_unknown_option_is_noticed
        the_page_says_of_each_integration_where_it_goes;
    submitted:
        every_submitted_report_follows_the_rules
        a_report_that_follows_the_rules_is_accepted
        a_report_that_breaks_a_rule_is_refused;
};

/// A test that gets the path of `promtool`.
type WithPromtool = (&'static str, fn(&Path));

const WITH_PROMTOOL: &[WithPromtool] = tests! {
    monitoring:
        alerts_fire_as_tested
        queries_of_the_dashboard_can_be_parsed;
};

fn main() -> std::process::ExitCode {
    let plain = PLAIN.iter().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    let with_promtool = WITH_PROMTOOL.iter().map(|&(name, test)| {
        Trial::ignorable_test(name, move || {
            let Some(folder) = std::env::var_os("CRI_TEST_PROMETHEUS") else {
                let reason = "not run: set CRI_TEST_PROMETHEUS to the folder of promtool; ci/test \
                              does";
                return Ok(Completion::ignored_with(reason));
            };
            test(&Path::new(&folder).join("promtool"));
            Ok(Completion::Completed)
        })
    });
    let trials = plain.chain(with_promtool).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
