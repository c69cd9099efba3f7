//! The duration of PLEG operations: a relist of PODS pods in which PERCENT percent of the
//! containers change (`relist/PODS/PERCENT`), the same with the conversion from the CRI's messages
//! (`relist_cri/...`), and one event with the conversion (`event/KIND`).
//!
//! The kubelet's own code, in Go, by the same ids and in microseconds of CPU time: `relist` 34.7
//! and 52.4 of 100 pods, 166 and 277 of 500, 371 and 717 of 1,000, 3,007 and 5,056 of 5,000;
//! `relist_cri` 294 and 405, 1,623 and 2,543, 3,350 and 5,275, 23,328 and 35,619; `event` 26.5 for
//! created, 25.1 started, 25.3 stopped, 4.17 deleted.

mod world;

use std::hint::black_box;
use std::time::Duration;

use cri_event_conformance::testing::history::EventKind;
use cri_event_conformance::testing::pleg::{Features, receive};
use criterion::{BenchmarkId, Criterion, criterion_group};
use world::{Node, World, flipped};

const PODS: [usize; 4] = [100, 500, 1000, 5000];

/// In percent and as every n-th: the containers that flip between running and exited with every
/// relist.
const FLIPS: [(u32, usize); 2] = [(0, 0), (10, 10)];

fn relist(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("relist");
    for (pods, (percent, every)) in sizes() {
        let world = World::new(pods);
        let running = world.list();
        let other = if percent == 0 {
            world.list()
        } else {
            flipped(&running, every)
        };
        let statuses = world.statuses(&running);
        let mut node = Node::new(Features::Generic);
        node.relist(&running, &statuses);
        let mut turn = false;
        group.bench_function(BenchmarkId::new(pods.to_string(), percent), |bencher| {
            bencher.iter(|| {
                turn = !turn;
                black_box(node.relist(if turn { &other } else { &running }, &statuses))
            });
        });
    }
}

fn relist_cri(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("relist_cri");
    for (pods, (percent, every)) in sizes() {
        let mut world = World::new(pods);
        let mut node = Node::new(Features::Generic);
        node.relist_cri(&world);
        group.bench_function(BenchmarkId::new(pods.to_string(), percent), |bencher| {
            bencher.iter(|| {
                if percent > 0 {
                    world.flip(every);
                }
                black_box(node.relist_cri(&world))
            });
        });
    }
}

fn sizes() -> impl Iterator<Item = (usize, (u32, usize))> {
    PODS.into_iter()
        .flat_map(|pods| FLIPS.map(|flip| (pods, flip)))
}

fn event(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("event");
    for (name, kind) in [
        ("created", EventKind::Created),
        ("started", EventKind::Started),
        ("stopped", EventKind::Stopped),
        ("deleted", EventKind::Deleted),
    ] {
        let mut node = Node::new(Features::EventedInUse);
        let mut event = World::event(kind);
        receive(&mut node.kubelet, &event).expect("the real kubelet does not panic either");
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                event.created_at.0 += 1;
                let receipt = receive(&mut node.kubelet, black_box(&event));
                node.kubelet.channel.drain().for_each(drop);
                receipt
            });
        });
    }
}

criterion_group! {
    name = pleg;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = relist, relist_cri, event
}

fn main() {
    pleg();
    Criterion::default().configure_from_args().final_summary();
}
