//! Serves the metrics over HTTP for Prometheus: `GET /metrics`.
//!
//! Anyone who can reach the address can read them.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::Metrics;

/// Prometheus's text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A running server, which ends when this is dropped.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    _server: JoinSet<io::Result<()>>,
}

/// Why the metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("serve metrics at {address}: {source}")]
pub struct EndpointError {
    /// The address.
    pub address: SocketAddr,
    /// The error of the system.
    pub source: io::Error,
}

impl Endpoint {
    /// Serves the metrics at an address; port 0 selects a free port.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound.
    pub async fn serve(metrics: Metrics, address: SocketAddr) -> Result<Self, EndpointError> {
        let failed = |source| EndpointError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let scrape = move || {
            let text = metrics.text();
            async move { ([(CONTENT_TYPE, TEXT_FORMAT)], text) }
        };
        let router = Router::new().route("/metrics", get(scrape));
        let mut server = JoinSet::new();
        server.spawn(axum::serve(listener, router).into_future());
        Ok(Self {
            address,
            _server: server,
        })
    }

    /// The line to print when it has started.
    #[must_use]
    pub fn announcement(&self) -> String {
        let address = self.address;
        let said = format!("metrics at http://{address}/metrics");
        if address.ip().is_loopback() {
            return said;
        }
        format!("{said}\nwarning: anyone who can reach this address can read the metrics")
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

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

    #[tokio::test]
    async fn an_address_in_use_is_reported() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let taken = Endpoint::serve(Metrics::default(), any).await.unwrap();
        let fault = Endpoint::serve(Metrics::default(), taken.address()).await;
        let message = fault.unwrap_err().to_string();
        assert!(message.contains(&taken.address().to_string()), "{message}");
    }
}
