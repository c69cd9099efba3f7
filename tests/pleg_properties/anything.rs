//! For any input, nothing panics, nothing is unbounded, and a guarded cache does not go back in
//! time.

use std::collections::BTreeMap;
use std::sync::Arc;

use cri_event_conformance::testing::history::{
    ContainerId, ContainerState, ContainerStatus, Event, EventKind, PodUid, RuntimeNanos,
    SandboxId, SandboxMetadata, SandboxState, SandboxStatus,
};
use cri_event_conformance::testing::pleg::{
    Features, Generic, InspectError, Kubelet, ListedItem, Moment, PodIdentity, PodList, PodStatus,
    SharedId, SharedUid, State, Waiter, receive,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Few, so that they coincide.
const IDS: [&str; 4] = ["", "a", "b", "c"];

type ListedPod = (usize, Vec<(usize, State)>, Vec<(usize, State)>);

#[derive(Clone, Debug)]
enum Input {
    Relist(i64, i64, Vec<ListedPod>, Vec<Option<i64>>),
    RelistPod(usize, i64, Vec<ListedPod>, Vec<Option<i64>>),
    RequestInspection(usize),
    Event(Box<Event>),
    GlobalTime(i64),
    Wait(usize, i64),
    FallBack,
}

/// Near, so that they collide; far, so that they overflow.
fn time() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..20_i64, 1 => Just(i64::MAX), 1 => Just(i64::MIN)]
}

fn state() -> impl Strategy<Value = State> {
    (0..State::ALL.len()).prop_map(|place| State::ALL[place])
}

fn pods() -> impl Strategy<Value = Vec<ListedPod>> {
    let items = || vec((0..IDS.len(), state()), 0..4);
    vec((0..IDS.len(), items(), items()), 0..4)
}

/// Times of statuses; an inspection fails without one.
fn inspections() -> impl Strategy<Value = Vec<Option<i64>>> {
    vec(option::weighted(0.8, time()), 0..4)
}

fn container() -> impl Strategy<Value = ContainerStatus> {
    let image = option::weighted(0.95, Just("image".into()));
    (0..IDS.len(), -1..5_i32, time(), image).prop_map(|(id, state, ns, image)| ContainerStatus {
        id: ContainerId::from(IDS[id]),
        state: match state {
            0 => ContainerState::Created,
            1 => ContainerState::Running,
            2 => ContainerState::Exited,
            number => ContainerState::Unknown(number),
        },
        created_at: RuntimeNanos(ns),
        started_at: RuntimeNanos(ns),
        finished_at: RuntimeNanos(ns),
        exit_code: state,
        image,
        ..ContainerStatus::default()
    })
}

fn sandbox() -> impl Strategy<Value = SandboxStatus> {
    let metadata = option::weighted(0.9, 0..IDS.len());
    let ips = vec("[0-9a-f.:]{0,12}", 0..3);
    (0..IDS.len(), metadata, -1..3_i32, time(), ips).prop_map(|(id, uid, state, ns, ips)| {
        SandboxStatus {
            id: SandboxId::from(IDS[id]),
            metadata: uid.map(|uid| SandboxMetadata {
                uid: PodUid::from(IDS[uid]),
                ..SandboxMetadata::default()
            }),
            state: match state {
                0 => SandboxState::Ready,
                1 => SandboxState::NotReady,
                number => SandboxState::Unknown(number),
            },
            created_at: RuntimeNanos(ns),
            ips,
            ..SandboxStatus::default()
        }
    })
}

fn event() -> impl Strategy<Value = Event> {
    let sandbox = option::weighted(0.9, sandbox());
    (
        0..IDS.len(),
        -1..5_i32,
        time(),
        sandbox,
        vec(container(), 0..4),
    )
        .prop_map(|(id, kind, ns, sandbox, containers)| Event {
            container: ContainerId::from(IDS[id]),
            kind: match kind {
                0 => EventKind::Created,
                1 => EventKind::Started,
                2 => EventKind::Stopped,
                3 => EventKind::Deleted,
                number => EventKind::Unknown(number),
            },
            created_at: RuntimeNanos(ns),
            sandbox: sandbox.map(Into::into),
            containers: containers.into_iter().map(Into::into).collect(),
        })
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => (time(), time(), pods(), inspections())
            .prop_map(|(now, at, pods, answers)| Input::Relist(now, at, pods, answers)),
        2 => (0..IDS.len(), time(), pods(), inspections())
            .prop_map(|(uid, at, pods, answers)| Input::RelistPod(uid, at, pods, answers)),
        1 => (0..IDS.len()).prop_map(Input::RequestInspection),
        6 => event().prop_map(|event| Input::Event(Box::new(event))),
        1 => time().prop_map(Input::GlobalTime),
        1 => (0..IDS.len(), time()).prop_map(|(uid, newer_than)| Input::Wait(uid, newer_than)),
        1 => Just(Input::FallBack),
    ]
}

fn list(at: i64, pods: &[ListedPod]) -> PodList<'static> {
    let seen = |items: &[(usize, State)]| {
        let seen = items
            .iter()
            .map(|(id, state)| ListedItem::sandbox(IDS[*id], *state));
        seen.collect::<Vec<_>>()
    };
    let mut list = PodList::new(Moment::from_ns(at));
    for (uid, containers, sandboxes) in pods {
        let pod = PodIdentity {
            uid: IDS[*uid],
            name: "",
            namespace: "",
        };
        list.push(pod, seen(containers), seen(sandboxes));
    }
    list
}

fn answer(kubelet: &mut Kubelet, generic: &mut Generic, answers: &[Option<i64>]) {
    for answer in answers {
        let Some(wanted) = generic.wanted() else {
            return;
        };
        let status = |read_at| PodStatus {
            uid: wanted.uid.clone(),
            name: "".into(),
            namespace: "".into(),
            ips: Vec::new(),
            sandboxes: Vec::new(),
            containers: Vec::new(),
            active_containers: Vec::new(),
            read_at: Moment::from_ns(read_at),
        };
        let inspection = answer.map(|read_at| Arc::new(status(read_at)));
        let inspection = inspection.ok_or_else(|| InspectError::Empty {
            method: "PodSandboxStatus",
            id: SharedId::from(""),
        });
        generic.inspected(kubelet, inspection);
    }
}

fn take(kubelet: &mut Kubelet, generic: &mut Generic, input: &Input) {
    match input {
        Input::Relist(now, at, pods, answers) => {
            generic.relist(kubelet, Moment::from_ns(*now), &list(*at, pods));
            answer(kubelet, generic, answers);
        }
        Input::RelistPod(uid, at, pods, answers) => {
            generic.relist_pod(kubelet, IDS[*uid], &list(*at, pods));
            answer(kubelet, generic, answers);
        }
        Input::RequestInspection(uid) => generic.request_inspection(IDS[*uid]),
        Input::Event(event) => {
            // A panic of the real kubelet is a finding, and a fine one.
            let _ = receive(kubelet, event);
        }
        Input::GlobalTime(at) => kubelet.bump_global_time(Moment::from_ns(*at)),
        Input::Wait(uid, newer_than) => {
            kubelet
                .cache
                .newer_than(IDS[*uid], Moment::from_ns(*newer_than), Waiter(0));
        }
        Input::FallBack => kubelet.fall_back(),
    }
}

fn freshness(kubelet: &Kubelet) -> BTreeMap<SharedUid, Moment> {
    let entries = kubelet.cache.entries().into_iter();
    entries
        .map(|(uid, entry)| (uid.clone(), entry.modified))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_input_upsets_the_engines(
        features in prop_oneof![
            Just(Features::Generic), Just(Features::GateOnly), Just(Features::EventedInUse),
        ],
        capacity in 0..5_usize,
        inputs in vec(input(), 0..30),
    ) {
        let mut kubelet = Kubelet::new(features, capacity);
        let mut generic = Generic::new();
        for input in &inputs {
            let before = freshness(&kubelet);
            take(&mut kubelet, &mut generic, input);
            prop_assert!(kubelet.channel.len() <= capacity);
            for (uid, after) in freshness(&kubelet) {
                let before = before.get(&uid).copied().unwrap_or(Moment::NEVER);
                prop_assert!(!kubelet.gate() || before <= after, "{uid} went back in time");
            }
        }
        // Whatever came before, two good relists of nothing leave nothing to ask.
        for now in 0..2 {
            generic.relist(&mut kubelet, Moment::from_ns(now), &PodList::new(Moment::from_ns(now)));
            prop_assert_eq!(generic.wanted(), None);
            prop_assert_eq!(kubelet.cache.global(), Some(Moment::from_ns(now)));
        }
    }

    #[test]
    fn a_second_relist_of_the_same_asks_nothing(pods in pods()) {
        let mut kubelet = Kubelet::new(Features::Generic, 1000);
        let mut generic = Generic::new();
        let listed = list(0, &pods);
        generic.relist(&mut kubelet, Moment::from_ns(0), &listed);
        answer(&mut kubelet, &mut generic, &[Some(0); IDS.len()]);
        kubelet.channel.drain().for_each(drop);
        generic.relist(&mut kubelet, Moment::from_ns(1), &listed);
        prop_assert_eq!(generic.wanted(), None);
        prop_assert!(kubelet.channel.is_empty());
    }
}
