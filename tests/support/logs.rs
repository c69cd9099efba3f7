//! Every container has a log path, as requested and as reported by the runtime.

use std::collections::BTreeMap;
use std::path::Path;

use cri_event_conformance::testing::history::{
    Body, CallId, ContainerId, ContainerStatus, Reply, Request, codec,
};

/// Checks a recorded run; returns the number of reports with the requested log path.
#[track_caller]
pub(crate) fn every_container_has_a_log(history: &Path) -> usize {
    let bytes = std::fs::read(history).unwrap();
    let mut asked: BTreeMap<CallId, String> = BTreeMap::new();
    let mut paths: BTreeMap<ContainerId, String> = BTreeMap::new();
    let mut agree = 0;
    let mut compare = |paths: &BTreeMap<ContainerId, String>, status: &ContainerStatus| {
        if let Some(path) = paths.get(&status.id) {
            assert_eq!(*status.setup.log_path, **path, "{}", status.id);
            agree += 1;
        }
    };
    for entry in codec::decode_file(&bytes).entries {
        match &entry.body {
            Body::CallBegan {
                call,
                request: Request::CreateContainer(spec),
                ..
            } => {
                assert!(!spec.log_path.is_empty(), "{spec:#?}");
                let directory = &spec.sandbox_spec.log_directory;
                assert!(
                    directory.starts_with('/') && directory.len() > 1,
                    "{spec:#?}"
                );
                asked.insert(*call, spec.full_log_path());
            }
            Body::CallEnded {
                call,
                result: Ok(Reply::Container(id)),
                ..
            } => {
                paths.insert(id.clone(), asked[call].clone());
            }
            Body::CallEnded {
                result: Ok(Reply::ContainerStatus(report)),
                ..
            } => compare(&paths, &report.status),
            Body::Event { event, .. } => {
                event
                    .containers
                    .iter()
                    .for_each(|status| compare(&paths, status));
            }
            _ => {}
        }
    }
    agree
}
