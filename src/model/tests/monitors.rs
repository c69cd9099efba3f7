//! Monitors of containers that are killed or frozen.

use super::*;
use crate::host::Condition;
use crate::model::{MonitorDeath, MonitorFreeze};

#[test]
fn the_death_of_a_monitor_ends_its_container_unless_the_behaviour_says_otherwise() {
    use MonitorDeath::{EndsContainer, EndsContainerTwice, LeavesProcess, Unnoticed, Unwatched};
    for (monitor_death, with_container, events, runs) in [
        (EndsContainer, false, 1, false),
        (EndsContainer, true, 1, false),
        (EndsContainerTwice, false, 2, false),
        (LeavesProcess, false, 1, true),
        (LeavesProcess, true, 1, false),
        (Unnoticed, false, 0, false),
        (Unwatched, false, 0, true),
        (Unwatched, true, 0, false),
    ] {
        let mut harness = Harness::new(Behaviour {
            monitor_death,
            ..Behaviour::default()
        });
        let pod = harness.sandbox("pod");
        let c = harness.running(&pod, "c", &Workload::UntilTerm);
        harness.events();
        let machine = &mut harness.machine;
        assert!(machine.kill_monitor(harness.now, &c, with_container));
        assert_eq!(harness.events().len(), events, "{monitor_death:?}");
        assert_eq!(harness.machine.runs(&c), runs, "{monitor_death:?}");
    }
}

#[test]
fn an_exit_is_noticed_when_the_frozen_monitor_runs_on() {
    for (monitor_freeze, others, after) in [
        (MonitorFreeze::DelaysExit, 1, 1),
        (MonitorFreeze::DelaysAllExits, 0, 2),
        (MonitorFreeze::LosesExit, 1, 0),
    ] {
        let mut harness = Harness::new(Behaviour {
            monitor_freeze,
            ..Behaviour::default()
        });
        let pod = harness.sandbox("pod");
        let c = harness.running(&pod, "c", &exit(3, SECOND));
        harness.running(&pod, "d", &exit(4, SECOND));
        harness.events();
        let (machine, condition) = (&mut harness.machine, Condition::FrozenMonitor);
        assert!(machine.set(harness.now, &c, condition, true));
        harness.advance(SECOND * 2);
        assert_eq!(harness.events().len(), others, "{monitor_freeze:?}");
        let machine = &mut harness.machine;
        machine.set(harness.now, &c, condition, false);
        assert_eq!(harness.events().len(), after, "{monitor_freeze:?}");
    }
}
