//! Policies, and the series of reports that pass, fail, or are undecided.

mod policies;

use std::path::Path;

use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

use super::{Gate, Policy, Ruling, Unusable, judge};
use crate::history::RunId;
use crate::outcome::{Conformance, Limit, Outcome, Profile, RunReport, Verdict, WatchTotals};
use crate::report::fixture::{fixture, outcome};
use crate::report::{Document, NamedReport, WorstLatency};

/// A report of its own run.
fn input(name: &str, outcomes: Vec<Outcome>) -> NamedReport {
    let mut report = RunReport {
        outcomes,
        faults: Vec::new(),
        expired: Vec::new(),
        profiles: vec![Profile::Cache],
        ..fixture()
    };
    report.info.run = RunId::from(name);
    NamedReport {
        name: name.to_owned(),
        report: Document::new(&report),
    }
}

fn one(verdict: Verdict) -> Outcome {
    outcome("ORD-01", "order::one", verdict)
}

/// Outcomes of a case that failed `failed` of `of` times.
fn repeated(id: &str, failed: usize, of: usize, how: Verdict) -> Vec<Outcome> {
    let verdicts = (0..of).map(|nth| if nth < failed { how } else { Verdict::Pass });
    let outcomes = verdicts.map(|verdict| outcome(id, "order::one", verdict));
    outcomes.collect()
}

/// Reports of a hundred cases run twenty times, of which one fails at a given rate, and of other
/// cases run once.
fn series(name: &str, reports: usize, percent: usize, others: usize) -> Vec<NamedReport> {
    const REPETITIONS: usize = 20;
    let report = |nth| {
        let flaky = REPETITIONS * percent / 100;
        let mut outcomes = repeated("ORD-00", flaky, REPETITIONS, Verdict::Fail);
        for case in 1..100 {
            let failed = usize::from(case <= others && nth == 0);
            let id = format!("ORD-{case:02}");
            outcomes.extend(repeated(&id, failed, REPETITIONS, Verdict::Fail));
        }
        input(&format!("{name}-{nth}"), outcomes)
    };
    (0..reports).map(report).collect()
}

fn policy(text: &str) -> Policy {
    Policy::parse(Path::new("p.yaml"), text).expect("it is a policy")
}

fn judged(text: &str, reports: &[NamedReport]) -> Gate {
    judge(&policy(text), reports, &[]).expect("they fit")
}

/// Checks the ruling on one report, and a text in the table.
#[track_caller]
fn check(text: &str, outcomes: Vec<Outcome>, expected: Ruling, shown: &str) {
    let gate = judged(text, &[input("r.json", outcomes)]);
    assert_eq!(gate.ruling(), expected, "{}", gate.text());
    assert!(gate.text().contains(shown), "{}", gate.text());
}

use Ruling::{CannotTell, Fail, Pass};

#[test]
fn a_run_that_skipped_everything_is_no_pass() {
    for text in [
        "max-known: 0",
        "skips: {max: 99}",
        "forbidden-versions: []\nmax-known: 1",
    ] {
        check(text, vec![one(Verdict::Skip)], Fail, "0 of 1 outcomes");
        check(text, Vec::new(), Fail, "0 of 0 outcomes");
        check(
            text,
            vec![one(Verdict::Error), one(Verdict::Skip)],
            CannotTell,
            "0 of 2",
        );
        check(text, vec![one(Verdict::Pass)], Pass, "gate: pass\n");
    }
}

#[test]
fn failures_that_are_all_known_are_accepted_by_an_option() {
    let failed = |hint: Option<&str>| Outcome {
        hint: hint.map(str::to_owned),
        ..one(Verdict::Fail)
    };
    let text = "profiles: {cache: known-failures}";
    let option = "run with --expectations builtin";
    check(text, vec![failed(Some("a race"))], Fail, option);
    let both = vec![failed(Some("a race")), failed(None)];
    let gate = judged(text, &[input("r.json", both)]);
    assert!(!gate.text().contains(option), "{}", gate.text());
}

#[test]
fn a_run_with_injected_defects_decides_nothing() {
    let with = |name| {
        let mut given = input(name, vec![one(Verdict::Pass)]);
        given.report.endpoint += Document::INJECTS;
        given.report.endpoint += "drop-stopped";
        given
    };
    let gate = judged("profiles: {cache: conformant}", &[with("n1")]);
    assert_eq!(gate.ruling(), Ruling::CannotTell);
    let text = gate.text();
    assert!(text.contains("a relay injected drop-stopped"), "{text}");
    let policy = policy("baseline: {alpha: 0.05}");
    let gate = judge(&policy, &series("after", 1, 0, 1), &[with("n1")]).unwrap();
    assert!(gate.text().contains("a relay injected drop-stopped"));
}

#[test]
fn a_profile_is_as_good_as_required_or_better() {
    let verdicts = [
        (vec![Verdict::Pass], [Pass, Pass, Pass]),
        (vec![Verdict::Pass, Verdict::Skip], [Fail, Pass, Pass]),
        (vec![Verdict::Pass, Verdict::Known], [Fail, Fail, Pass]),
        (vec![Verdict::Pass, Verdict::Fail], [Fail, Fail, Fail]),
        (vec![Verdict::Pass, Verdict::Error], [CannotTell; 3]),
    ];
    for (verdicts, expected) in verdicts {
        for (required, expected) in ["conformant", "partial", "known-failures"]
            .iter()
            .zip(expected)
        {
            let text = format!("profiles: {{cache: {required}}}");
            let outcomes = verdicts.iter().copied().map(one).collect();
            check(&text, outcomes, expected, "profile cache");
        }
    }
    let other = "profiles: {observer: conformant}";
    check(
        other,
        vec![one(Verdict::Pass)],
        CannotTell,
        "not judged for it",
    );
}

#[test]
fn known_failures_are_counted_once_and_expire() {
    let twice = || vec![one(Verdict::Known), one(Verdict::Known)];
    check("max-known: 1", twice(), Pass, "1: ORD-01");
    check("max-known: 0", twice(), Fail, "1: ORD-01");
    let mut expired = input("r.json", vec![one(Verdict::Pass)]);
    expired.report.expired = vec!["ORD-01".to_owned()];
    let gate = judged("max-known: 1", &[expired]);
    assert_eq!(gate.ruling(), Fail, "{}", gate.text());
}

#[test]
fn required_case_missing_or_skipped() {
    let both = |second| vec![one(Verdict::Pass), outcome("STP-01", "stop::two", second)];
    let (pass, skip) = (|| both(Verdict::Pass), || both(Verdict::Skip));
    check("skips: {max: 1}", skip(), Pass, "1: STP-01");
    check("skips: {max: 0}", skip(), Fail, "1: STP-01");
    check("skips: {never: [ORD-01, order]}", skip(), Pass, "");
    check("skips: {never: [STP-01]}", skip(), Fail, "skipped STP-01");
    check("skips: {never: [stop]}", skip(), Fail, "skipped stop");
    check("skips: {never: [stop, STP-01]}", pass(), Pass, "");
    check("skips: {never: [oom]}", pass(), Fail, "not in the report");
    check(
        "skips: {never: [STP-02], max: 1}",
        pass(),
        Fail,
        "not in the report",
    );
}

#[test]
fn a_policy_names_cases_of_the_suite_or_of_a_report() {
    let judged = |text| {
        let own = vec![
            one(Verdict::Pass),
            outcome("MIN-01", "mine::a", Verdict::Pass),
        ];
        judge(&policy(text), &[input("r.json", own)], &[])
    };
    assert!(judged("skips: {never: [MIN-01, mine], except: [STP-04]}").is_ok());
    let unknown = [
        (
            "skips: {never: [sotp]}",
            "there is no case or area `sotp`; did you mean `stop`?",
        ),
        (
            "skips: {never: [mine], except: [STP-4]}",
            "there is no case or area `STP-4`; did you mean `STP-04`?",
        ),
    ];
    for (text, expected) in unknown {
        let fault = judged(text).unwrap_err().to_string();
        assert!(fault.ends_with(expected), "{fault}");
    }
}

#[test]
fn runs_of_a_smaller_tier_or_of_a_part_fail() {
    let of = |tier: Option<&str>, partial| {
        let mut run = input("r.json", vec![one(Verdict::Pass)]);
        run.report.tier = tier.map(str::to_owned);
        run.report.partial = partial;
        judged("tier: core", &[run])
    };
    assert_eq!(of(Some("smoke"), false).ruling(), Fail);
    assert_eq!(of(Some("core"), false).ruling(), Pass);
    assert_eq!(of(Some("core"), true).ruling(), Fail);
    assert_eq!(of(Some("full"), false).ruling(), Pass);
    assert_eq!(of(None, false).ruling(), Pass);
    let mut watch = input("w.json", vec![one(Verdict::Pass)]);
    watch.report.watch = Some(WatchTotals::default());
    assert_eq!(judged("tier: core", &[watch]).ruling(), CannotTell);
}

#[test]
fn latencies_have_limits() {
    let limit = |limits: &str| format!("latencies: [{{limit: event-after-call, {limits}}}]");
    let outcomes = || vec![one(Verdict::Pass)];
    check(
        &limit("p50: 2ms, p99: 2s, worst: 2s"),
        outcomes(),
        Pass,
        "1.0 ms",
    );
    check(&limit("p50: 1ms"), outcomes(), Fail, "event-after-call p50");
    check(&limit("p99: 1s"), outcomes(), Fail, "1.234 s");
    check(&limit("worst: 1s"), outcomes(), Fail, "1.234 s");
    check(
        "latencies: [{limit: call, p50: 1s}]",
        outcomes(),
        CannotTell,
        "not measured",
    );
    let mut older = input("r.json", outcomes());
    older.report.latencies[0].p99_ms = None;
    assert_eq!(judged(&limit("p99: 2s"), &[older]).ruling(), CannotTell);
}

#[test]
fn a_version_may_be_forbidden() {
    let forbidden = |runtime: &str, version: &str| {
        format!("forbidden-versions: [{{runtime: {runtime}, version: '{version}', reason: why}}]")
    };
    let outcomes = || vec![one(Verdict::Pass)];
    check(&forbidden("containerd", "<2.1"), outcomes(), Pass, "");
    check(&forbidden("cri-o", ">=2.1"), outcomes(), Pass, "");
    check(
        &forbidden("containerd", ">=2.1 <2.2"),
        outcomes(),
        Fail,
        "containerd 2.1.9: why",
    );
    let mut unknown = input("r.json", outcomes());
    unknown.report.runtime.version = "main".to_owned();
    let gate = judged(&forbidden("containerd", "<2.1"), &[unknown]);
    assert_eq!(gate.ruling(), CannotTell);
}

#[test]
fn a_rate_is_as_certain_as_there_are_repetitions() {
    let text = "flakes: {max-rate: 0.05}";
    let of = |failed, of, how| repeated("ORD-01", failed, of, how);
    check(text, of(0, 59, Verdict::Fail), Pass, "up to 5%");
    check(
        text,
        of(0, 58, Verdict::Fail),
        CannotTell,
        "ORD-01 0 of 58, up to 5",
    );
    check(text, of(3, 60, Verdict::Fail), CannotTell, "ORD-01 3 of 60");
    check(text, of(4, 60, Verdict::Fail), Fail, "ORD-01 4 of 60");
    check(text, of(30, 60, Verdict::Known), Pass, "ORD-01 0 of 60");
    let least = "flakes: {min-repetitions: 20}";
    check(least, of(9, 20, Verdict::Fail), Pass, "at least 20");
    check(least, of(0, 19, Verdict::Fail), CannotTell, "ORD-01 (19)");
    check(least, of(1, 20, Verdict::Error), CannotTell, "ORD-01 (19)");
}

#[test]
fn repetitions_of_several_reports_are_added_up() {
    let reports = ["a", "b"].map(|name| input(name, repeated("ORD-01", 0, 30, Verdict::Fail)));
    let gate = judged("flakes: {max-rate: 0.05, min-repetitions: 60}", &reports);
    assert_eq!(gate.ruling(), Pass, "{}", gate.text());
}

#[test]
fn the_worst_of_several_reports_counts_and_is_named() {
    let reports = [
        input("good.json", vec![one(Verdict::Pass)]),
        input("bad.json", vec![one(Verdict::Fail)]),
    ];
    let gate = judged("profiles: {cache: conformant}", &reports);
    assert_eq!(gate.ruling(), Fail);
    let shown = "bad.json: non-conformant, ORD-01";
    assert!(gate.text().contains(shown), "{}", gate.text());
    assert!(
        gate.markdown()
            .contains("| fail | profile cache | conformant | bad.json: ")
    );
}

const COMPARED: &str = "baseline: {alpha: 0.05}";

#[track_caller]
fn check_baseline(before: &[NamedReport], after: &[NamedReport], expected: Ruling, shown: &str) {
    let gate = judge(&policy(COMPARED), after, before).expect("they fit");
    assert_eq!(gate.ruling(), expected, "{}", gate.text());
    assert!(gate.text().contains(shown), "{}", gate.text());
}

#[test]
fn as_many_flakes_as_in_the_baseline_pass_and_many_more_fail() {
    let before = series("before", 5, 5, 3);
    check_baseline(&before, &series("after", 5, 5, 3), Pass, "none of 100");
    check_baseline(&before, &series("after", 5, 10, 3), Pass, "none of 100");
    check_baseline(
        &before,
        &series("after", 5, 30, 3),
        Fail,
        "ORD-00 30 of 100, was 5 of 100",
    );
    check_baseline(&before, &series("after", 5, 0, 0), Pass, "none of 100");
    let mut skipped = series("after", 5, 5, 0);
    for outcome in skipped.iter_mut().flat_map(|it| &mut it.report.outcomes) {
        outcome.verdict = Verdict::Skip;
    }
    check_baseline(&before, &skipped, Fail, "0 of 2000 outcomes");
}

#[test]
fn a_baseline_of_a_run_or_two_tells_nothing() {
    let runs = |name: &str, reports, verdict| {
        let report = |nth| input(&format!("{name}-{nth}"), vec![one(verdict)]);
        (0..reports).map(report).collect::<Vec<_>>()
    };
    let before = |reports| runs("before", reports, Verdict::Pass);
    let after = |reports, verdict| runs("after", reports, verdict);
    check_baseline(
        &before(3),
        &after(3, Verdict::Fail),
        CannotTell,
        "too few repetitions",
    );
    check_baseline(&before(4), &after(4, Verdict::Fail), Fail, "p = 1.43e-2");
    check_baseline(&before(4), &after(4, Verdict::Pass), Pass, "none of 1");
    check_baseline(
        &before(39),
        &after(1, Verdict::Fail),
        Fail,
        "1 of 1, was 0 of 39",
    );
    check_baseline(
        &before(38),
        &after(1, Verdict::Fail),
        CannotTell,
        "too few repetitions",
    );
}

#[test]
fn many_cases_that_fail_are_worse_together() {
    let report = |name: &str, failed: usize| {
        let cases =
            (0..40).flat_map(|case| repeated(&format!("ORD-{case:02}"), failed, 3, Verdict::Fail));
        vec![input(name, cases.collect())]
    };
    let shown = "failed 120 of 120, was 0 of 120, p < 1e-30";
    check_baseline(&report("before", 0), &report("after", 3), Fail, shown);
    check_baseline(
        &report("before", 1),
        &report("after", 1),
        Pass,
        "none of 40, 0 with",
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let report = || input("a", vec![one(Verdict::Pass)]);
    let other = || input("b", vec![one(Verdict::Pass)]);
    let refused = |text, reports: &[NamedReport], baseline: &[NamedReport]| {
        judge(&policy(text), reports, baseline).unwrap_err()
    };
    let plain = "max-known: 0";
    let twice = Unusable::Repeated("a".to_owned(), "a".to_owned());
    assert_eq!(refused(plain, &[report(), report()], &[]), twice);
    assert_eq!(refused(COMPARED, &[report()], &[report()]), twice);
    assert_eq!(refused(COMPARED, &[report()], &[]), Unusable::NoBaseline);
    assert_eq!(
        refused(plain, &[report()], &[other()]),
        Unusable::NoComparison
    );
}

#[test]
fn a_wrong_policy_is_refused_with_its_place() {
    for (text, expected) in [
        ("", "it requires nothing; begin with"),
        ("{}", "it requires nothing"),
        ("max-know: 0", "unknown key `max-know`"),
        ("max-known: 0\nskips: {most: 1}", "p.yaml:2:9"),
        ("profiles: {cash: conformant}", "did you mean `cache`?"),
        (
            "profiles: {cache: error}",
            "expected one of `conformant`, `partial`",
        ),
        ("skips: {}", "give it `max`"),
        ("flakes: {}", "give it `min-repetitions`"),
        ("flakes: {max-rate: 5}", "5 is no share such as `0.05`"),
        ("latencies: [{limit: call}]", "`call` has no limit"),
        (
            "latencies: [{limit: call, p50: 3}]",
            "is no duration such as `300ms`",
        ),
        (
            "forbidden-versions: [{runtime: a, version: '2', reason: b}]",
            "no comparison of versions",
        ),
        (
            "forbidden-versions: [{runtime: contanerd, version: '<2', reason: b}]",
            "no runtime is called `contanerd`; did you mean `containerd`?",
        ),
        ("baseline: {}", "missing key `alpha`"),
        ("- 1", "a policy: a mapping with"),
    ] {
        let fault = Policy::parse(Path::new("p.yaml"), text).unwrap_err();
        assert!(fault.contains(expected), "{text}: {fault}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 64,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_series_is_not_worse_than_one_like_it(failed in 0_usize..40, of in 40_usize..60) {
        let report = |name| input(name, repeated("ORD-01", failed, of, Verdict::Fail));
        let gate = judge(&policy(COMPARED), &[report("a")], &[report("b")]).unwrap();
        prop_assert_eq!(gate.ruling(), Pass);
    }

    #[test]
    fn a_further_failure_never_lets_a_gate_pass(
        before in 0_usize..30, after in 0_usize..29, text in any::<bool>(),
    ) {
        let text = if text { COMPARED } else { "flakes: {max-rate: 0.3}" };
        let ruling = |failed| {
            let report = input("a", repeated("ORD-01", failed, 30, Verdict::Fail));
            let earlier = input("b", repeated("ORD-01", before, 30, Verdict::Fail));
            let baseline = if text == COMPARED { vec![earlier] } else { Vec::new() };
            judge(&policy(text), &[report], &baseline).unwrap().ruling()
        };
        prop_assert!(ruling(after) <= ruling(after + 1));
    }

    #[test]
    fn whatever_the_policy_all_skipped_never_passes(max in 0_usize..9, cases in 0_usize..9) {
        let skipped = (0..cases).map(|_| one(Verdict::Skip)).collect();
        let text = format!("{{max-known: {max}, skips: {{max: {max}}}}}");
        prop_assert_eq!(judged(&text, &[input("a", skipped)]).ruling(), Fail);
    }
}
