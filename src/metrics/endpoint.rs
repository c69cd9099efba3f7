//! Serves the metrics over HTTP for Prometheus: `GET /metrics`.
//!
//! Anyone who can reach the address can read them, and can do no more: connections are bounded in
//! number and time.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use super::Metrics;
use crate::listener::Server;

/// Prometheus's text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A running server, which ends when this is dropped.
#[derive(Debug)]
pub struct Endpoint(Server);

#[derive(Debug, thiserror::Error)]
#[error("serve metrics at {address}: {source}")]
pub struct EndpointError {
    pub address: SocketAddr,
    pub source: io::Error,
}

impl Endpoint {
    /// Serves the metrics at an address; port 0 selects a free port.
    pub async fn serve(metrics: Metrics, address: SocketAddr) -> Result<Self, EndpointError> {
        let scrape = move || {
            let text = metrics.text();
            async move { ([(CONTENT_TYPE, TEXT_FORMAT)], text) }
        };
        let router = Router::new().route("/metrics", get(scrape));
        let server = Server::serve(address, router).await;
        let failed = |source| EndpointError { address, source };
        server.map(Self).map_err(failed)
    }

    /// The line printed at its start.
    pub fn announcement(&self) -> String {
        let address = self.address();
        let said = format!("metrics at http://{address}/metrics");
        if address.ip().is_loopback() {
            return said;
        }
        format!("{said}\nwarning: anyone who can reach this address can read the metrics")
    }

    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::limits::{CONNECTION_LIFETIME, CONNECTIONS};

    async fn get(endpoint: &Endpoint, path: &str) -> String {
        let mut stream = TcpStream::connect(endpoint.address()).await.unwrap();
        let ask = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn metrics_are_served_as_prometheus_text() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let metrics = Metrics::default();
        let endpoint = Endpoint::serve(metrics.clone(), any).await.unwrap();
        metrics.missed();
        let answer = get(&endpoint, "/metrics").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains("content-type: text/plain; version=0.0.4"));
        assert!(answer.contains("missed_events_total 1"), "{answer}");
        assert!(get(&endpoint, "/").await.starts_with("HTTP/1.1 404"));
    }

    /// Connections that have sent half of a request's head.
    async fn half_requests(endpoint: &Endpoint, count: usize) -> Vec<TcpStream> {
        let mut streams = Vec::new();
        for _ in 0..count {
            let mut stream = TcpStream::connect(endpoint.address()).await.unwrap();
            let half = b"GET /metrics HTTP/1.1\r\nHost: ";
            let _ = stream.write_all(half).await;
            streams.push(stream);
        }
        streams
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_request_is_closed_by_its_time_limit() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoint = Endpoint::serve(Metrics::default(), any).await.unwrap();
        let mut half = half_requests(&endpoint, 1).await.remove(0);
        let mut answer = Vec::new();
        let closed = timeout(CONNECTION_LIFETIME * 2, half.read_to_end(&mut answer)).await;
        let _ = closed.expect("the endpoint closes it");
    }

    #[tokio::test(start_paused = true)]
    async fn connections_are_bounded_and_the_endpoint_answers_afterwards() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoint = Endpoint::serve(Metrics::default(), any).await.unwrap();
        let began = Instant::now();
        let _half = half_requests(&endpoint, CONNECTIONS * 3).await;
        let answer = get(&endpoint, "/metrics").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(began.elapsed() >= CONNECTION_LIFETIME * 3);
    }

    #[tokio::test]
    async fn an_address_in_use_is_reported() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let taken = Endpoint::serve(Metrics::default(), any).await.unwrap();
        let fault = Endpoint::serve(Metrics::default(), taken.address()).await;
        let message = fault.unwrap_err().to_string();
        assert!(message.contains(&taken.address().to_string()), "{message}");
    }
}
