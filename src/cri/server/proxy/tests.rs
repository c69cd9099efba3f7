//! Any client and any gRPC server, with a proxy between them.

use std::sync::Mutex;

use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Code;
use tonic::codec::Streaming;
use tonic::server::NamedService;
use tonic::transport::Channel;

use super::super::tests::{Scripted, version};
use super::*;
use crate::cri::client::{method_path, stream};
use crate::cri::connect::channel;
use crate::cri::{Client, serve};
use crate::history::{Event, RuntimeVersion, StatusCode};
use crate::host::Reactor;

/// Decides as its fields say; its own backend is never asked.
struct Plain {
    far: Endpoint,
    alters: Option<fn() -> Result<Reply, CallFault>>,
}

impl Backend for Plain {
    type Events = tokio_stream::Empty<Result<Event, CallFault>>;

    async fn call(&self, _: Request) -> Result<Reply, CallFault> {
        unreachable!("a proxy passes calls")
    }

    async fn subscribe(&self, _: Option<Duration>) -> Result<Self::Events, CallFault> {
        Ok(tokio_stream::empty())
    }
}

impl Intercept for Plain {
    fn endpoints(&self) -> [&Endpoint; 2] {
        [&self.far, &self.far]
    }

    fn decodes(&self, _: &str) -> bool {
        self.alters.is_some()
    }

    async fn admit(&self, _: &str) -> Result<Duration, CallFault> {
        Ok(Duration::ZERO)
    }

    async fn alter(
        &self,
        _: &Request,
        answer: Result<Reply, CallFault>,
    ) -> Result<Reply, CallFault> {
        self.alters.map_or(answer, |alter| alter())
    }
}

/// Serves a proxy to this endpoint within this process.
fn proxied(far: Endpoint, alters: Option<fn() -> Result<Reply, CallFault>>) -> Endpoint {
    let (endpoint, mut listener) = Listener::in_process("proxy");
    let by = Arc::new(Plain { far, alters });
    tokio::spawn(async move { proxy(by, &mut listener).await });
    endpoint
}

/// A service that neither the CRI nor the suite knows: it replies with the call's own metadata and
/// message, then with given messages, then with a status of its own.
#[derive(Clone)]
struct Far(Arc<Mutex<Option<mpsc::UnboundedReceiver<Bytes>>>>);

const FAR: &str = "test.Far";

impl NamedService for Far {
    const NAME: &'static str = FAR;
}

impl Service<http::Request<Body>> for Far {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, ask: http::Request<Body>) -> Self::Future {
        let far = self.clone();
        let mut grpc = Grpc::new(BytesCodec).max_decoding_message_size(usize::MAX);
        Box::pin(async move { Ok(grpc.server_streaming(far, ask).await) })
    }
}

impl ServerStreamingService<Bytes> for Far {
    type Response = Bytes;
    type ResponseStream = Messages;
    type Future = BoxFuture<Response<Messages>, Status>;

    fn call(&mut self, ask: tonic::Request<Bytes>) -> Self::Future {
        let (asked, _, message) = ask.into_parts();
        let mut trailers = MetadataMap::new();
        trailers.insert("x-trailer", "at the end".parse().unwrap());
        let details = Bytes::from_static(b"details");
        let end = Status::with_details_and_metadata(Code::DataLoss, "the end", details, trailers);
        let given = self.0.lock().unwrap().take();
        let (_, none) = mpsc::unbounded_channel();
        let given = UnboundedReceiverStream::new(given.unwrap_or(none)).map(Ok);
        let messages = tokio_stream::once(Ok(message)).chain(given);
        let messages: Messages = Box::pin(messages.chain(tokio_stream::once(Err(end))));
        let answer = Response::from_parts(asked, messages, http::Extensions::new());
        Box::pin(async move { Ok(answer) })
    }
}

/// Serves a far service; the endpoint of a proxy to it.
fn far(given: Option<mpsc::UnboundedReceiver<Bytes>>) -> Endpoint {
    let (endpoint, mut listener) = Listener::in_process("far");
    let router = tonic::transport::Server::builder().add_service(Far(Arc::new(Mutex::new(given))));
    let Incoming::InProcess(connections) = listener.incoming() else {
        panic!("it is within this process");
    };
    tokio::spawn(router.serve_with_incoming(connections));
    proxied(endpoint, None)
}

/// Calls a method that no type of the suite describes.
async fn ask(proxy: &Endpoint, ask: tonic::Request<Bytes>) -> Response<Streaming<Bytes>> {
    let connection: Channel = channel(proxy).await.unwrap();
    let mut grpc = client::Grpc::new(connection).max_decoding_message_size(usize::MAX);
    grpc.ready().await.unwrap();
    let path = method_path(FAR, "Unknown");
    grpc.server_streaming(ask, path, BytesCodec).await.unwrap()
}

#[test]
fn a_call_that_is_unknown_passes_unchanged_whatever_its_size() {
    Reactor::simulated().unwrap().runtime().block_on(async {
        let message = Bytes::from(vec![7; (16 << 20) + 1]);
        let mut call = tonic::Request::new(message.clone());
        call.set_timeout(Duration::from_secs(77));
        call.metadata_mut()
            .insert("x-user", "data".parse().unwrap());
        let binary = tonic::metadata::MetadataValue::from_bytes(&[0, 255]);
        call.metadata_mut().insert_bin("x-user-bin", binary.clone());
        let far = far(None);
        let mut answer = ask(&far, call).await;
        let headers = answer.metadata().clone();
        assert_eq!(headers.get("x-user").unwrap(), "data");
        assert_eq!(headers.get_bin("x-user-bin").unwrap(), binary);
        assert_eq!(headers.get("grpc-timeout").unwrap(), "77000000u");
        assert!(
            headers
                .get("user-agent")
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("tonic/")
        );
        let messages = answer.get_mut();
        assert!(messages.message().await.unwrap() == Some(message));
        let end = messages.message().await.unwrap_err();
        assert_eq!((end.code(), end.message()), (Code::DataLoss, "the end"));
        assert_eq!(end.details(), b"details");
        assert_eq!(end.metadata().get("x-trailer").unwrap(), "at the end");
    });
}

#[test]
fn a_stream_passes_message_by_message_and_its_cancellation_arrives() {
    Reactor::simulated().unwrap().runtime().block_on(async {
        let (give, given) = mpsc::unbounded_channel();
        let far = far(Some(given));
        let mut answer = ask(&far, tonic::Request::new(Bytes::new())).await;
        assert_eq!(
            answer.get_mut().message().await.unwrap(),
            Some(Bytes::new())
        );
        for message in ["one", "two"] {
            give.send(Bytes::from(message)).unwrap();
            let passed = answer.get_mut().message().await.unwrap();
            assert_eq!(passed, Some(Bytes::from(message)));
        }
        assert!(!give.is_closed());
        drop(answer);
        tokio::time::timeout(Duration::from_secs(5), give.closed())
            .await
            .unwrap();
    });
}

#[test]
fn a_call_that_its_caller_gives_up_is_given_up() {
    /// Reports the end of the call, which is never answered.
    struct Stuck(Mutex<Option<oneshot::Sender<()>>>);

    impl Backend for Stuck {
        type Events = tokio_stream::Empty<Result<Event, CallFault>>;

        async fn call(&self, _: Request) -> Result<Reply, CallFault> {
            let _ends_with_the_call = self.0.lock().unwrap().take();
            std::future::pending().await
        }

        async fn subscribe(&self, _: Option<Duration>) -> Result<Self::Events, CallFault> {
            Ok(tokio_stream::empty())
        }
    }

    Reactor::simulated().unwrap().runtime().block_on(async {
        let (ends, ended) = oneshot::channel();
        let (endpoint, mut listener) = Listener::in_process("stuck");
        let stuck = Arc::new(Stuck(Mutex::new(Some(ends))));
        tokio::spawn(async move { serve(stuck, &mut listener).await });
        let proxy = proxied(endpoint, None);
        let late = Client::connect(&proxy, &proxy, Duration::from_secs(1)).await;
        assert!(late.is_err());
        assert!(ended.await.is_err());
    });
}

#[test]
fn a_decoded_answer_is_the_runtimes_unless_it_is_altered() {
    let named = |name: &str| {
        let runtime_name = name.to_owned();
        Reply::Version(RuntimeVersion {
            runtime_name,
            ..version()
        })
    };
    let alter: fn() -> _ = || {
        Err(CallFault {
            code: StatusCode::NOT_FOUND,
            message: "altered".to_owned(),
            deadline: Duration::ZERO,
        })
    };
    Reactor::simulated().unwrap().runtime().block_on(async {
        let backend = Arc::new(Scripted::default());
        backend
            .answers
            .lock()
            .unwrap()
            .extend([Ok(named("one")), Ok(named("two"))]);
        let (endpoint, mut listener) = Listener::in_process("scripted");
        tokio::spawn(async move { serve(backend, &mut listener).await });
        let plain = proxied(endpoint.clone(), None);
        let client = Client::connect(&plain, &plain, Duration::from_secs(1))
            .await
            .unwrap();
        assert_eq!(client.version().runtime_name, "one");
        let altered = proxied(endpoint, Some(alter));
        let fault = Client::connect(&altered, &altered, Duration::from_secs(1))
            .await
            .unwrap_err();
        assert!(fault.to_string().contains("altered"), "{fault}");
    });
}

#[test]
fn a_runtime_that_is_gone_is_unavailable_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let far: Endpoint = folder.path().join("s").to_str().unwrap().parse().unwrap();
    let gone = |status: Status| {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.message().contains("/s"), "{status:?}");
    };
    let near = Reactor::real().unwrap();
    let proxy = near
        .runtime()
        .block_on(async { proxied(far.clone(), None) });
    let connection = near.runtime().block_on(channel(&proxy)).unwrap();
    let subscribe = || {
        let path = method_path(messages::RUNTIME_SERVICE, "GetContainerEvents");
        let stream = stream(&connection, path, tonic::Request::new(Bytes::new()));
        near.runtime().block_on(stream)
    };
    gone(subscribe().unwrap_err());
    for _ in 0..2 {
        let runtime = Reactor::real().unwrap();
        let mut listener = runtime.runtime().block_on(Listener::bind(&far)).unwrap();
        let silent = Arc::new(Silent);
        runtime
            .runtime()
            .spawn(async move { serve(silent, &mut listener).await });
        let mut events = subscribe().unwrap().into_inner();
        drop(runtime);
        gone(near.runtime().block_on(events.message()).unwrap_err());
        gone(subscribe().unwrap_err());
    }
}

/// Has an event stream without events.
struct Silent;

impl Backend for Silent {
    type Events = tokio_stream::Pending<Result<Event, CallFault>>;

    async fn call(&self, _: Request) -> Result<Reply, CallFault> {
        Ok(Reply::Done)
    }

    async fn subscribe(&self, _: Option<Duration>) -> Result<Self::Events, CallFault> {
        Ok(tokio_stream::pending())
    }
}
