//! A reference consumer behind a relay with each fault of `ci/book/consumers.md`, and a naive one,
//! which each of the faults misleads.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_cri::v1::runtime_service_client::RuntimeServiceClient;
use k8s_cri::v1::{
    ContainerEventType, ContainerStatusRequest, GetEventsRequest, ListContainersRequest,
};
use tokio::sync::watch;
use tokio::time::{interval, timeout};
use tonic::Code;
use tonic::transport::Channel;

use crate::relay::Relayed;
use crate::suite::suite;

type Client = RuntimeServiceClient<Channel>;

/// How far a container is; the order is that of its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Created,
    Running,
    Exited,
    Gone,
}

/// The stage of each container, and how often a consumer reported its end.
#[derive(Clone, Debug, Default)]
struct Beliefs(BTreeMap<String, (Stage, u32)>);

type Shared = Arc<watch::Sender<Beliefs>>;

impl Beliefs {
    /// Each container has ended once and is gone.
    fn are_right(&self) -> bool {
        !self.0.is_empty() && self.0.values().all(|it| *it == (Stage::Gone, 1))
    }

    /// The reference consumer's step: a life has no way back.
    fn advance(&mut self, id: &str, to: Stage) {
        if let Some((stage, ends)) = self.of(id, to) {
            *ends += u32::from(to >= Stage::Exited && *stage < Stage::Exited);
            *stage = to.max(*stage);
        }
    }

    /// The naive consumer's step: it believes each event.
    fn believe(&mut self, id: &str, to: Stage) {
        if let Some((stage, ends)) = self.of(id, to) {
            let never_ran = *stage == Stage::Created && to == Stage::Gone;
            *ends += u32::from(to == Stage::Exited || never_ran);
            *stage = to;
        }
    }

    /// What is gone may have been a sandbox, of which nothing is remembered.
    fn of(&mut self, id: &str, to: Stage) -> Option<&mut (Stage, u32)> {
        if to < Stage::Gone {
            self.0.entry(id.to_owned()).or_default();
        }
        self.0.get_mut(id)
    }

    fn live(&self) -> BTreeSet<String> {
        let live = self.0.iter().filter(|(_, (stage, _))| *stage < Stage::Gone);
        live.map(|(id, _)| id.clone()).collect()
    }
}

fn stage(state: i32) -> Stage {
    match state {
        0 => Stage::Created,
        1 => Stage::Running,
        _ => Stage::Exited,
    }
}

/// An event is a hint: the runtime is asked. However the stream ends, it is opened again.
async fn follow_events(endpoint: String, beliefs: Shared) {
    let mut again = interval(Duration::from_millis(50));
    loop {
        again.tick().await;
        if let Ok(mut client) = Client::connect(endpoint.clone()).await
            && let Ok(events) = client.get_container_events(GetEventsRequest {}).await
        {
            let mut events = events.into_inner();
            while let Ok(Some(event)) = events.message().await {
                let (container_id, verbose) = (event.container_id, false);
                let id = container_id.clone();
                let request = ContainerStatusRequest {
                    container_id,
                    verbose,
                };
                let now = match client.container_status(request).await {
                    Ok(answer) => answer.into_inner().status.map(|it| stage(it.state)),
                    Err(fault) => (fault.code() == Code::NotFound).then_some(Stage::Gone),
                };
                if let Some(now) = now {
                    beliefs.send_modify(|beliefs| beliefs.advance(&id, now));
                }
            }
        }
    }
}

/// Relists with a deadline: no lost event is lost for longer.
async fn relist(endpoint: String, beliefs: Shared) {
    let mut again = interval(Duration::from_millis(500));
    loop {
        again.tick().await;
        let before = beliefs.borrow().live();
        let list = async {
            let mut client = Client::connect(endpoint.clone()).await.ok()?;
            let list = client
                .list_containers(ListContainersRequest::default())
                .await;
            Some(list.ok()?.into_inner().containers)
        };
        if let Ok(Some(listed)) = timeout(Duration::from_secs(2), list).await {
            let ids: BTreeSet<&str> = listed.iter().map(|it| &*it.id).collect();
            let gone = before.iter().filter(|id| !ids.contains(&***id));
            let gone = gone.map(|id| (&**id, Stage::Gone));
            let now = listed.iter().map(|it| (&*it.id, stage(it.state)));
            for (id, now) in gone.chain(now) {
                beliefs.send_modify(|beliefs| beliefs.advance(id, now));
            }
        }
    }
}

/// Believes the snapshots of the first stream, which it opens with a deadline, and nothing else.
async fn trust(endpoint: String, beliefs: Shared) {
    let mut client = Client::connect(endpoint).await.unwrap();
    let opening = timeout(
        Duration::from_millis(500),
        client.get_container_events(GetEventsRequest {}),
    );
    let Ok(Ok(events)) = opening.await else {
        return;
    };
    let mut events = events.into_inner();
    while let Ok(Some(event)) = events.message().await {
        let mut statuses = event.containers_statuses.iter();
        let status = statuses.find(|it| it.id == event.container_id);
        let now = match event.container_event_type() {
            ContainerEventType::ContainerDeletedEvent => Some(Stage::Gone),
            ContainerEventType::ContainerStoppedEvent => status.map(|_| Stage::Exited),
            _ => status.map(|it| stage(it.state).min(Stage::Running)),
        };
        if let Some(now) = now {
            beliefs.send_modify(|beliefs| beliefs.believe(&event.container_id, now));
        }
    }
}

/// Runs cases on the model while a consumer follows it through a relay with a fault. Returns what
/// the consumer believes once it is right, or when its time after the end is over.
fn believed<C: Future<Output = ()> + Send + 'static>(
    options: &[&str],
    wait: Duration,
    consume: impl FnOnce(String, Shared) -> C,
) -> Beliefs {
    let relayed = Relayed::start(options);
    let beliefs = Arc::new(watch::Sender::new(Beliefs::default()));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.spawn(consume(relayed.endpoint(), Arc::clone(&beliefs)));
    let model = relayed.model.endpoint();
    let cases = ["-r", &model, "--exact", "ORD-01", "STP-02"];
    assert_eq!(suite(cases).run().code, 0);
    runtime.block_on(async {
        let mut changes = beliefs.subscribe();
        let _ = timeout(wait, changes.wait_for(Beliefs::are_right)).await;
    });
    beliefs.borrow().clone()
}

async fn survive(endpoint: String, beliefs: Shared) {
    tokio::join!(
        follow_events(endpoint.clone(), Arc::clone(&beliefs)),
        relist(endpoint, beliefs)
    );
}

/// The faults of the page, and whether they mislead a consumer that only reads events.
const FAULTS: [(&[&str], bool); 8] = [
    (&["--defect", "cut"], true),
    (&["--defect", "half-close"], true),
    (&["--call", "GetContainerEvents", "--delay", "1s"], true),
    (&["--defect", "drop-stopped"], true),
    (&["--defect", "repeat-every-event"], true),
    (&["--defect", "deleted-before-stopped"], true),
    (&["--defect", "own-status-missing"], true),
    (&["--call", "ListContainers", "--delay", "5s"], false),
];

/// The naive consumer learns nothing later.
const AFTER: Duration = Duration::from_secs(1);

#[test]
fn a_reference_consumer_survives_each_fault_and_a_naive_one_does_not() {
    let beliefs = believed(&[], AFTER, trust);
    assert!(beliefs.are_right(), "{beliefs:#?}");
    std::thread::scope(|scope| {
        for (options, misleads) in FAULTS {
            scope.spawn(move || {
                let beliefs = believed(options, Duration::from_secs(15), survive);
                assert!(beliefs.are_right(), "{options:?}: {beliefs:#?}");
                let beliefs = believed(options, AFTER, trust);
                assert_eq!(beliefs.are_right(), !misleads, "{options:?}: {beliefs:#?}");
            });
        }
    });
}
