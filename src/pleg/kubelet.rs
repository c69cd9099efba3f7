//! The state that the PLEGs of a kubelet share.

use super::cache::Cache;
use super::gauges::Gauges;
use super::lifecycle::Channel;
use super::moment::Moment;
use super::pod_status::PodStatus;

/// The shared state of a kubelet's PLEGs.
#[derive(Clone, Debug)]
pub struct Kubelet {
    pub cache: Cache,
    pub channel: Channel,
    pub gauges: Gauges,
    gate: bool,
    evented: bool,
}

impl Kubelet {
    pub fn new(features: Features, channel_capacity: usize) -> Self {
        let gate = features != Features::Generic;
        Self {
            cache: Cache::new(gate),
            channel: Channel::new(channel_capacity),
            gauges: Gauges::default(),
            gate,
            evented: features == Features::EventedInUse,
        }
    }

    /// Whether the feature gate `EventedPLEG` is on.
    pub fn gate(&self) -> bool {
        self.gate
    }

    /// Whether the Evented PLEG is in use: it was started and has not fallen back.
    pub fn evented_in_use(&self) -> bool {
        self.evented
    }

    /// The Evented PLEG falls back to relisting, for the life of the process.
    pub fn fall_back(&mut self) {
        self.evented = false;
    }

    /// Sets the cache's global time, as the Evented PLEG does every five seconds without any call.
    pub fn bump_global_time(&mut self, now: Moment) {
        self.cache.update_time(now);
    }

    /// The cached addresses of a pod that has stopped, which replace those of its new status.
    ///
    /// Source: kubernetes `pkg/kubelet/pleg/generic.go` (`getPodIPs`).
    pub(super) fn preserved_ips(&self, new: &PodStatus) -> Option<Vec<String>> {
        if !new.ips.is_empty() || new.has_ready_sandbox() {
            return None;
        }
        let cached = self.cache.get(new.uid.as_str())?.status()?;
        (!cached.ips.is_empty()).then(|| cached.ips.clone())
    }
}

/// The configuration of the kubelet's PLEGs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// The gate `EventedPLEG` is off.
    Generic,
    /// The gate is on, and the Evented PLEG does not write the cache: it has fallen back, or the
    /// kubelet is 1.37 or later.
    GateOnly,
    /// The gate is on, and the Evented PLEG of kubelet 1.26 to 1.36 is in use.
    EventedInUse,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_that_falls_back_keeps_the_gate_and_loses_the_events() {
        let mut kubelet = Kubelet::new(Features::EventedInUse, 1);
        assert!(kubelet.gate() && kubelet.evented_in_use());
        kubelet.fall_back();
        assert!(kubelet.gate() && !kubelet.evented_in_use());
    }
}
