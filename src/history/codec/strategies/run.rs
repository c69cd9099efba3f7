//! What a history says of its run.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;

use super::{duration, runtime_version, text};
use crate::history::{
    Audience, CgroupDriver, ExpectationFile, Host, OciRuntime, Offers, PlannedCase,
    PlannedExecution, RunId, RunInfo, RunPlan,
};

pub(in crate::history::codec) fn run_info() -> impl Strategy<Value = RunInfo> {
    let about = (text(), text(), text(), runtime_version());
    let found = (
        option::of(oci()),
        option::of(host()),
        option::of(duration()),
        option::of(select(vec![CgroupDriver::Systemd, CgroupDriver::Cgroupfs])),
    );
    (about, found).prop_map(
        |((run, suite, endpoint, runtime), (oci, host, call_deadline, cgroup_driver))| RunInfo {
            run: RunId::from(run),
            suite,
            endpoint,
            runtime,
            oci,
            cgroup_driver,
            host,
            call_deadline,
        },
    )
}

fn oci() -> impl Strategy<Value = OciRuntime> {
    let told = (text(), option::of(text()), option::of(text()));
    told.prop_map(|(handler, name, version)| OciRuntime {
        handler,
        name,
        version,
    })
}

fn host() -> impl Strategy<Value = Host> {
    let read = (
        text(),
        option::of(text()),
        any::<u32>(),
        any::<Option<u32>>(),
    );
    read.prop_map(|(kernel, cgroup, cpus, load_percent)| Host {
        kernel,
        cgroup,
        cpus,
        load_percent,
    })
}

pub(super) fn run_plan() -> impl Strategy<Value = RunPlan> {
    let case = (text(), text()).prop_map(|(name, definition)| PlannedCase { name, definition });
    let execution = (any::<u32>(), option::of(any::<u32>()))
        .prop_map(|(case, repetition)| PlannedExecution { case, repetition });
    let file = (text(), text()).prop_map(|(path, text)| ExpectationFile { path, text });
    let audience = prop_oneof![Just(Audience::Everyone), Just(Audience::One)];
    (
        (vec(case, 0..3), vec(execution, 0..3), vec(text(), 0..3)),
        (text(), any::<u64>(), option::of(file)),
        (
            any::<bool>(),
            vec(text(), 0..3),
            option::of(text()),
            option::of(audience),
        ),
        any::<[Option<bool>; 5]>(),
    )
        .prop_map(|(planned, found, scope, offers)| RunPlan {
            cases: planned.0,
            executions: planned.1,
            invariants: planned.2,
            image: found.0,
            foreign_pods: found.1,
            expectations: found.2,
            partial: scope.0,
            profiles: scope.1,
            tier: scope.2,
            audience: scope.3,
            offers: Offers {
                streamed_lists: offers[0],
                handlers: offers[1],
                network: offers[2],
                events: offers[3],
                stop_signal: offers[4],
            },
        })
}
