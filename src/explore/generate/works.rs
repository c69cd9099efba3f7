//! The workloads of containers, as keys of steps.

use serde_json::{Value, json};

use super::Generator;
use crate::case::Step;
use crate::explore::plan::create;

/// Runs until SIGTERM.
pub(super) fn until_term() -> Value {
    json!({"workload": "until-term"})
}

/// Runs until SIGKILL.
pub(super) fn ignore_term() -> Value {
    json!({"workload": "ignore-term"})
}

pub(super) fn exits(code: u8, after_ms: u16) -> Value {
    json!({"workload": {"exit": {"code": code, "after": format!("{after_ms}ms")}}})
}

/// Runs until SIGUSR1, which is no SIGTERM.
pub(super) fn until_signal() -> Value {
    json!({"workload": {"until-signal": {"signal": "SIGUSR1", "code": 42}}})
}

/// Allocates more than its pod may have.
pub(super) fn allocates() -> Value {
    json!({"workload": {"allocate": {"mib": 128, "after": "500ms"}}})
}

/// Allocates more than it may have itself.
fn exceeds_limit(workload: &Value) -> Value {
    json!({"workload": workload, "memory-mib": 16})
}

impl Generator<'_> {
    /// A workload.
    pub(super) fn work(&mut self) -> Value {
        let codes = [0, 0, 0, 1, 1, 2, 42, 127, 137, 143, 255];
        let code = self.pick(&codes).unwrap_or_default();
        let after_ms = self.pick(&[0, 50, 300, 300, 500, 1_000]);
        let after_ms = after_ms.unwrap_or_default();
        let signal = self.pick(&[4, 5, 7, 11]).unwrap_or(11);
        let dies_after = format!("{}ms", after_ms.max(50));
        let in_child = |then: &str| {
            let child = json!({"mib": 128, "after": "500ms", "then": then, "code": 0});
            json!({ "allocate-in-child": child })
        };
        let mut of_all = exceeds_limit(&in_child("5s"));
        of_all["oom-group"] = true.into();
        let works = [
            until_term(),
            until_term(),
            until_term(),
            until_term(),
            ignore_term(),
            ignore_term(),
            exits(code, after_ms),
            exits(code, after_ms),
            exits(code, after_ms),
            exits(0, 0),
            json!({"workload": {"die": {"signal": signal, "after": dies_after}}}),
            json!({"workload": {"dump-core": {"signal": 11, "after": "300ms"}}}),
            exceeds_limit(&json!({"allocate": {"mib": 128, "after": "500ms"}})),
            exceeds_limit(&in_child("1s")),
            of_all,
            exceeds_limit(&json!({"allocate-on-term": {"mib": 128}})),
            json!({"workload": {"orphan-child": {"code": 3, "after": "300ms"}}}),
            json!({"workload": "missing-program"}),
            json!({"workload": {"zombies": 20}}),
            until_signal(),
        ];
        let work = self.pick(&works).unwrap_or_else(until_term);
        if self.can_create(&work) {
            work
        } else {
            exits(1, 300)
        }
    }

    /// The special keys of a container, if any.
    pub(super) fn kind(&mut self) -> Value {
        let kinds = [
            json!({"tty": true}),
            json!({
                "mounted": true,
                "labels": {"app": "web"},
                "annotations": {"io.kubernetes.container.hash": "8f3c"},
            }),
            json!({"annotation-kib": 200}),
            json!({"stop-signal": "SIGUSR1"}),
        ];
        if self.chance(75) {
            return json!({});
        }
        let kind = self.pick(&kinds).unwrap_or_default();
        if self.can_create(&kind) {
            kind
        } else {
            json!({})
        }
    }

    /// Whether the runtime and its node can have a container with these keys.
    fn can_create(&self, keys: &Value) -> bool {
        let container = create("c", "p", &[&until_term(), keys]);
        self.can_take(&Step::Create(container))
    }

    pub(super) fn grace(&mut self) -> u8 {
        self.pick(&[0, 0, 1, 2, 2, 5]).unwrap_or_default()
    }
}
