//! The cache family.

use cri_event_conformance::testing::pleg::{
    Cache, Entry, InspectError, Moment, PodStatus, Released, SharedId, SharedUid, Waiter,
};
use serde::Deserialize;
use std::sync::Arc;

use crate::diff::compare;

#[derive(Deserialize)]
struct Vector {
    evented_gate: bool,
    ops: Vec<Op>,
    expected: Vec<After>,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Op {
    Set {
        uid: String,
        ts: i64,
        rev: i64,
        #[serde(default)]
        err: bool,
    },
    Delete {
        uid: String,
    },
    UpdateTime {
        ts: i64,
    },
    SetObserved {
        uid: String,
        ts: i64,
    },
    Get {
        uid: String,
    },
    GetNewerThan {
        uid: String,
        ts: i64,
        sub: u64,
    },
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct After {
    updated: Option<bool>,
    got: Option<Got>,
    resolved: Vec<Got>,
    pending: Vec<u64>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Got {
    sub: Option<u64>,
    uid: String,
    rev: i64,
    default: bool,
    err: bool,
}

pub(crate) fn check(line: &str) -> Result<(), String> {
    let vector: Vector = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let mut cache = Cache::new(vector.evented_gate);
    if vector.ops.len() != vector.expected.len() {
        return Err("steps and expectations do not pair up".to_owned());
    }
    for (number, (op, expected)) in vector.ops.iter().zip(&vector.expected).enumerate() {
        let mut after = take(&mut cache, op);
        let mut released = cache.take_released();
        released.sort_by_key(|released| released.waiter);
        after.resolved = released.iter().map(resolved).collect();
        after.pending = cache.waiting().map(|waiter| waiter.0).collect();
        compare(&format!("step {number}"), expected, &after)?;
    }
    Ok(())
}

fn take(cache: &mut Cache, op: &Op) -> After {
    let mut after = After::default();
    match op {
        Op::Set { uid, ts, rev, err } => {
            let uid = SharedUid::from(uid.as_str());
            let inspection = if *err {
                Err(InspectError::Empty {
                    method: "PodSandboxStatus",
                    id: SharedId::from(rev.to_string().as_str()),
                })
            } else {
                Ok(Arc::new(status(&uid, *rev)))
            };
            after.updated = Some(cache.set(&uid, inspection, Moment::from_ns(*ts)));
        }
        Op::Delete { uid } => cache.delete(uid),
        Op::UpdateTime { ts } => cache.update_time(Moment::from_ns(*ts)),
        Op::SetObserved { uid, ts } => cache.set_observed(uid, Moment::from_ns(*ts)),
        Op::Get { uid } => after.got = Some(got(None, uid, cache.get(uid))),
        Op::GetNewerThan { uid, ts, sub } => {
            cache.newer_than(uid, Moment::from_ns(*ts), Waiter(*sub));
        }
    }
    after
}

fn status(uid: &SharedUid, rev: i64) -> PodStatus {
    PodStatus {
        uid: uid.clone(),
        name: "".into(),
        namespace: "".into(),
        ips: Vec::new(),
        sandboxes: Vec::new(),
        containers: Vec::new(),
        active_containers: Vec::new(),
        read_at: Moment::from_ns(rev),
    }
}

fn resolved(released: &Released) -> Got {
    let waiter = Some(released.waiter.0);
    got(waiter, released.uid.as_str(), released.entry.as_ref())
}

fn got(sub: Option<u64>, uid: &str, entry: Option<&Entry>) -> Got {
    let rev = entry.map_or(0, |entry| match &entry.inspection {
        Ok(status) => status.read_at.ns(),
        Err(InspectError::Empty { id, .. }) => id.as_str().parse().expect("a revision"),
        Err(error) => panic!("no error of ours: {error}"),
    });
    Got {
        sub,
        uid: uid.to_owned(),
        rev,
        default: entry.is_none(),
        err: entry.is_some_and(|entry| entry.error().is_some()),
    }
}
