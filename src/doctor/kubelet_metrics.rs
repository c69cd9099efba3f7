//! A kubelet's metrics about Evented PLEG, since its start:
//! <https://kubernetes.io/docs/reference/instrumentation/metrics/>.

use super::finding::{Area, Finding, Status};

/// The number of stream errors after which a kubelet stops retrying for good.
const ATTEMPTS: f64 = 5.0;

/// The metrics; `None` for each that is not served.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct KubeletMetrics {
    pub(super) gate: Option<bool>,
    /// The number of opened streams, and of those that ended with an error.
    connections: Option<(f64, f64)>,
}

impl KubeletMetrics {
    /// Reads Prometheus' text format.
    pub(super) fn parse(text: &str) -> Self {
        let value = |name: &str| {
            let mut values = text.lines().filter_map(|line| {
                let rest = line.strip_prefix(name)?;
                rest.split_whitespace().next()?.parse::<f64>().ok()
            });
            values.next()
        };
        let gate = text.lines().find_map(|line| {
            let labels = line.strip_prefix("kubernetes_feature_enabled{")?;
            let (labels, value) = labels.rsplit_once('}')?;
            let mut labels = labels.split(',');
            let is_it = labels.any(|label| label.trim() == "name=\"EventedPLEG\"");
            let value: f64 = value.split_whitespace().next()?.parse().ok()?;
            is_it.then_some(value > 0.0)
        });
        let opened = value("kubelet_evented_pleg_connection_success_count");
        let failed = value("kubelet_evented_pleg_connection_error_count");
        Self {
            gate,
            connections: opened.zip(failed),
        }
    }

    /// The finding on the current use of events; `None` if the metrics do not show it.
    pub(super) fn finding(&self, origin: &str) -> Option<Finding> {
        let (opened, failed) = self.connections?;
        let new = |status, id, finding: String| {
            Finding::new((Area::Kubelet, status), id, finding, origin)
        };
        if self.gate == Some(false) || (opened == 0.0 && failed == 0.0) {
            return None;
        }
        let counts = format!("opened {opened} times, ended by an error {failed} times");
        Some(if failed >= ATTEMPTS {
            let finding = format!("the kubelet has given up the event stream: {counts}");
            gave_up(new(Status::Wrong, "kubelet-gave-up", finding))
        } else if opened > 0.0 {
            let finding = format!("the kubelet follows events: its stream was {counts}");
            new(Status::Ok, "kubelet-uses-events", finding)
        } else {
            let finding = format!("the kubelet has no event stream yet: {counts}");
            new(Status::Wrong, "kubelet-without-events", finding)
                .why("After five errors it only relists, until it is restarted.")
                .fix("Make the runtime send events, then restart the kubelet.")
        })
    }
}

/// Adds the effect and the fix.
pub(super) fn gave_up(finding: Finding) -> Finding {
    finding
        .why("After some failed attempts a kubelet only relists; it does not try again.")
        .fix("Fix the other findings, then restart the kubelet.")
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[track_caller]
    fn check(gate: Option<u8>, counts: Option<(u8, u8)>, expect: Option<&str>) {
        let mut text = String::from("# TYPE kubelet_evented_pleg_connection_error_count counter\n");
        if let Some(gate) = gate {
            write!(
                text,
                "kubernetes_feature_enabled{{name=\"AllAlpha\",stage=\"ALPHA\"}} 1\n\
                 kubernetes_feature_enabled{{name=\"EventedPLEG\",stage=\"ALPHA\"}} {gate}\n"
            )
            .expect("a string takes it");
        }
        if let Some((opened, failed)) = counts {
            write!(
                text,
                "kubelet_evented_pleg_connection_success_count {opened}\n\
                 kubelet_evented_pleg_connection_error_count {failed} 1700000000000\n"
            )
            .expect("a string takes it");
        }
        let metrics = KubeletMetrics::parse(&text);
        assert_eq!(metrics.gate, gate.map(|gate| gate == 1));
        let finding = metrics.finding("/metrics");
        assert_eq!(finding.map(|it| it.id).as_deref(), expect, "{text}");
    }

    #[test]
    fn the_counts_say_whether_events_are_in_use() {
        let uses = Some("kubelet-uses-events");
        check(Some(1), Some((1, 0)), uses);
        check(Some(1), Some((5, 4)), uses);
        check(None, Some((1, 0)), uses);
        check(Some(1), Some((1, 5)), Some("kubelet-gave-up"));
        check(Some(1), Some((0, 2)), Some("kubelet-without-events"));
        // Neither tried nor switched on.
        check(Some(1), Some((0, 0)), None);
        check(Some(0), Some((1, 0)), None);
        check(Some(1), None, None);
        check(None, None, None);
    }
}
