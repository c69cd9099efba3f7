//! How often a run relists its pods beside the cases.

use std::sync::{Arc, Mutex};

use super::{Before, START, STARTED, case, run_on};
use crate::history::{CallFault, POD_UID_LABEL, Request};
use crate::limits;
use crate::model::Model;

/// Counts the relists of all pods, and those of one pod.
#[derive(Clone, Default)]
struct Relists(Arc<Mutex<[usize; 2]>>);

impl Before for Relists {
    async fn act(&self, _: &Model, request: &Request) -> Result<(), CallFault> {
        if let Request::ListContainers {
            sandbox: None,
            labels,
            ..
        } = request
        {
            let of_one = labels.contains_key(POD_UID_LABEL);
            self.0.lock().expect("no panic")[usize::from(of_one)] += 1;
        }
        Ok(())
    }
}

#[test]
fn a_pod_is_relisted_on_demand_after_its_syncs_and_a_few_times_between_two_relists_of_all() {
    let life =
        format!("{START}  - stop: {{container: c, grace: 2s}}\n").replace("\n  ", "\n        ");
    let lives = format!("  - repeat:\n      times: 50\n      steps:\n      {life}");
    let relists = Relists::default();
    let (report, ..) = run_on(relists.clone(), vec![case("ORD-91", &lives, STARTED)]);
    assert_eq!(report.faults, Vec::<String>::new());
    let [of_all, of_one] = *relists.0.lock().expect("no panic");
    assert!(of_one > 0);
    let most = (of_all + 1) * limits::RELISTS_OF_A_POD;
    assert!(of_one <= most, "{of_one} of one pod beside {of_all} of all");
}
