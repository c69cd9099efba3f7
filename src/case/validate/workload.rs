//! Whether what a container shall do makes sense under the limits that it has.

use std::time::Duration;

use super::findings::Findings;
use crate::case::{AllocateInChildSpec, Delay, DieSpec, ExitSpec, Number, WorkloadSpec, limits};

/// Checks the workload of a command, which is not the init of its container.
pub(super) fn check_command(
    workload: &WorkloadSpec,
    limit: Option<u32>,
    has_item: bool,
    found: &mut Findings,
) {
    if let WorkloadSpec::Die(DieSpec { after, .. }) = workload {
        found.enter("die");
        check_delay(*after, has_item, found);
        found.leave();
    } else {
        check(workload, limit, has_item, found);
    }
}

/// Checks the workload of a container; `limit` is its limit of memory, if it has one.
pub(super) fn check(
    workload: &WorkloadSpec,
    limit: Option<u32>,
    has_item: bool,
    found: &mut Findings,
) {
    match workload {
        WorkloadSpec::Exit(exit) => check_exit("exit", exit, has_item, found),
        WorkloadSpec::OrphanChild(exit) => check_exit("orphan-child", exit, has_item, found),
        WorkloadSpec::ExitAt(exit) => {
            found.enter("exit-at");
            check_item("code", exit.code == Number::Item, has_item, found);
            check_span("time", Some(exit.time), found);
            found.leave();
        }
        WorkloadSpec::Die(die) => check_die("die", die, has_item, found),
        WorkloadSpec::DumpCore(die) => check_die("dump-core", die, has_item, found),
        WorkloadSpec::UntilSignal(heed) => {
            found.enter("until-signal");
            check_item("code", heed.code == Number::Item, has_item, found);
            found.leave();
        }
        WorkloadSpec::Allocate(eat) => {
            found.enter("allocate");
            check_amount(eat.mib, limit, found);
            check_span("after", Some(eat.after), found);
            found.leave();
        }
        WorkloadSpec::AllocateOnTerm(eat) => {
            found.enter("allocate-on-term");
            check_amount(eat.mib, limit, found);
            found.leave();
        }
        WorkloadSpec::AllocateInChild(eat) => check_allocate_in_child(eat, limit, has_item, found),
        WorkloadSpec::Zombies(count) => {
            let most = limits::ZOMBIES;
            if !(1..=most).contains(count) {
                found.object_to("zombies", format!("there are from 1 to {most} zombies"));
            }
        }
        WorkloadSpec::UntilTerm
        | WorkloadSpec::IgnoreTerm
        | WorkloadSpec::MissingProgram
        | WorkloadSpec::NotExecutable => {}
    }
}

/// Whether a workload says with which code it ends when it is left alone.
pub(super) fn declares_exit(workload: &WorkloadSpec) -> bool {
    match workload {
        WorkloadSpec::Exit(_)
        | WorkloadSpec::ExitAt(_)
        | WorkloadSpec::OrphanChild(_)
        | WorkloadSpec::Die(_)
        | WorkloadSpec::DumpCore(_)
        | WorkloadSpec::AllocateInChild(_) => true,
        WorkloadSpec::UntilTerm
        | WorkloadSpec::IgnoreTerm
        | WorkloadSpec::UntilSignal(_)
        | WorkloadSpec::Allocate(_)
        | WorkloadSpec::AllocateOnTerm(_)
        | WorkloadSpec::MissingProgram
        | WorkloadSpec::NotExecutable
        | WorkloadSpec::Zombies(_) => false,
    }
}

/// Objects to a span of time that nobody should wait for.
pub(super) fn check_span(key: &'static str, span: Option<Duration>, found: &mut Findings) {
    if span.is_some_and(|span| span > limits::SPAN) {
        let most = humantime::format_duration(limits::SPAN);
        found.object_to(key, format!("nothing may take longer than {most}"));
    }
}

/// Objects to a limit of memory that is out of bounds.
pub(super) fn check_limit(mib: u32, found: &mut Findings) {
    let most = limits::MEMORY_MIB;
    if !(1..=most).contains(&mib) {
        let message = format!("a memory limit is from 1 to {most} MiB");
        found.object_to("memory-mib", message);
    }
}

fn check_exit(key: &'static str, exit: &ExitSpec, has_item: bool, found: &mut Findings) {
    found.enter(key);
    check_item("code", exit.code == Number::Item, has_item, found);
    check_delay(exit.after, has_item, found);
    found.leave();
}

fn check_die(key: &'static str, die: &DieSpec, has_item: bool, found: &mut Findings) {
    /// SIGILL, SIGTRAP, SIGBUS and SIGSEGV.
    const FAULTS: [u8; 4] = [4, 5, 7, 11];
    found.enter(key);
    check_item("signal", die.signal == Number::Item, has_item, found);
    if let Number::Given(signal) = die.signal
        && !FAULTS.contains(&signal)
    {
        found
            .object_to("signal", "the init of a container cannot die of it alone")
            .advise("the signals of faults are 4, 5, 7 and 11");
    }
    check_delay(die.after, has_item, found);
    found.leave();
}

fn check_allocate_in_child(
    eat: &AllocateInChildSpec,
    limit: Option<u32>,
    has_item: bool,
    found: &mut Findings,
) {
    found.enter("allocate-in-child");
    check_amount(eat.mib, limit, found);
    check_item("code", eat.code == Number::Item, has_item, found);
    check_span("after", Some(eat.after), found);
    check_span("then", Some(eat.then), found);
    found.leave();
}

fn check_amount(mib: u32, limit: Option<u32>, found: &mut Findings) {
    let most = limits::MEMORY_MIB;
    if mib > most {
        let message = format!("no container may use more than {most} MiB");
        found.object_to("mib", message);
    }
    if limit.is_none_or(|limit| limit >= mib) {
        found
            .object_to("mib", "nothing limits the memory to less than this")
            .advise("add a lower `memory-mib` to the container, or to its sandbox");
    }
}

fn check_delay(after: Delay, has_item: bool, found: &mut Findings) {
    match after {
        Delay::Given(after) => check_span("after", Some(after), found),
        Delay::Item => check_item("after", true, has_item, found),
    }
}

fn check_item(key: &'static str, is_item: bool, has_item: bool, found: &mut Findings) {
    if is_item && !has_item {
        found
            .object_to(key, "`item` stands for nothing here")
            .advise("it is the item whose turn it is in a `repeat` with `items`");
    }
}
