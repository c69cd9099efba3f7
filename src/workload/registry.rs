//! A registry of one image on the loopback interface, for `PullImage`.
//!
//! It serves the read-only part of the OCI distribution protocol, over plain HTTP. containerd
//! accepts that from 127.0.0.1; CRI-O only if registries.conf has an entry for 127.0.0.1 with
//! `insecure = true`. Its connections are bounded, and end when the [`Registry`] is dropped.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use serde_json::json;

use super::image::{Image, MANIFEST_TYPE};
use crate::listener::Server;

/// A running registry, which ends when this is dropped.
#[derive(Debug)]
pub struct Registry {
    server: Server,
    name: String,
}

impl Registry {
    /// Serves the image as `repository:tag`, and by its digest, on a free port.
    pub async fn serve(image: Image, repository: &str, tag: &str) -> io::Result<Self> {
        let content = Content {
            image,
            repository: repository.to_owned(),
            tag: tag.to_owned(),
        };
        let router = Router::new().fallback(answer).with_state(Arc::new(content));
        Ok(Self {
            server: Server::serve((Ipv4Addr::LOCALHOST, 0).into(), router).await?,
            name: format!("{repository}:{tag}"),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The reference to pull: `127.0.0.1:PORT/REPOSITORY:TAG`.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.address(), self.name)
    }
}

struct Content {
    image: Image,
    repository: String,
    tag: String,
}

/// A requested manifest or blob.
struct Found<'a> {
    media_type: &'static str,
    digest: &'a str,
    bytes: &'a [u8],
}

impl Content {
    /// The answer to a path that does not exist is an error code of the distribution protocol.
    fn find(&self, path: &str) -> Result<Found<'_>, &'static str> {
        let path = path
            .strip_prefix("/v2/")
            .ok_or("UNSUPPORTED")?
            .strip_prefix(&self.repository)
            .and_then(|path| path.strip_prefix('/'))
            .ok_or("NAME_UNKNOWN")?;
        if let Some(reference) = path.strip_prefix("manifests/") {
            let manifest = self.image.manifest();
            return [&self.tag, manifest.digest()]
                .contains(&reference)
                .then_some(Found {
                    media_type: MANIFEST_TYPE,
                    digest: manifest.digest(),
                    bytes: manifest.bytes(),
                })
                .ok_or("MANIFEST_UNKNOWN");
        }
        let digest = path.strip_prefix("blobs/").ok_or("UNSUPPORTED")?;
        let blob = self
            .image
            .blobs()
            .into_iter()
            .find(|blob| blob.digest() == digest)
            .ok_or("BLOB_UNKNOWN")?;
        Ok(Found {
            media_type: "application/octet-stream",
            digest: blob.digest(),
            bytes: blob.bytes(),
        })
    }
}

async fn answer(
    State(content): State<Arc<Content>>,
    method: Method,
    uri: Uri,
) -> Result<Response, Infallible> {
    let response = Response::builder().header("Docker-Distribution-Api-Version", "registry/2.0");
    let (response, body) = if ![Method::GET, Method::HEAD].contains(&method) {
        let response = response
            .status(StatusCode::METHOD_NOT_ALLOWED)
            .header(ALLOW, "GET, HEAD");
        (
            response.header(CONTENT_TYPE, "application/json"),
            error_body("UNSUPPORTED"),
        )
    } else if ["/v2", "/v2/"].contains(&uri.path()) {
        (
            response.header(CONTENT_TYPE, "application/json"),
            b"{}".to_vec(),
        )
    } else {
        match content.find(uri.path()) {
            Ok(Found {
                media_type,
                digest,
                bytes,
            }) => (
                response
                    .header(CONTENT_TYPE, media_type)
                    .header("Docker-Content-Digest", digest),
                bytes.to_vec(),
            ),
            Err(code) => (
                response
                    .status(StatusCode::NOT_FOUND)
                    .header(CONTENT_TYPE, "application/json"),
                error_body(code),
            ),
        }
    };
    // The answer to HEAD has the length, too, but no body.
    let length = body.len();
    let body = if method == Method::HEAD {
        Body::empty()
    } else {
        Body::from(body)
    };
    Ok(response
        .header(CONTENT_LENGTH, length)
        .body(body)
        .expect("every header is valid"))
}

/// An error in the distribution protocol's form.
fn error_body(code: &str) -> Vec<u8> {
    json!({ "errors": [{ "code": code, "message": "this registry has one image" }] })
        .to_string()
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::*;
    use crate::limits::CONNECTIONS;

    const HELLO: &[u8] = b"GET /v2/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

    fn image() -> Image {
        Image::build(&BTreeMap::new())
    }

    /// The registry's reply to these bytes, until it closes the connection.
    async fn exchange(registry: &Registry, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(registry.address()).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    async fn registry() -> Registry {
        Registry::serve(image(), "suite/workload", "test")
            .await
            .unwrap()
    }

    #[track_caller]
    fn check(answer: &str, status: u16, lines: &[&str], end: &str) {
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        for line in lines {
            assert!(
                answer.contains(&format!("\r\n{line}\r\n")),
                "{line} in {answer}"
            );
        }
        assert!(answer.ends_with(end), "{answer}");
    }

    async fn request(method: &str, path: &str) -> String {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        exchange(&registry().await, request.as_bytes()).await
    }

    #[tokio::test]
    async fn the_protocol_is_announced() {
        check(&request("GET", "/v2/").await, 200, &[], "\r\n\r\n{}");
    }

    #[tokio::test]
    async fn the_manifest_is_served_by_tag_and_by_digest() {
        let image = image();
        let manifest = str::from_utf8(image.manifest().bytes()).unwrap();
        let lines = [
            format!("content-type: {MANIFEST_TYPE}"),
            format!("content-length: {}", manifest.len()),
            format!("docker-content-digest: {}", image.manifest_digest()),
        ];
        let lines = lines.each_ref().map(String::as_str);
        for reference in ["test", image.manifest_digest()] {
            let path = format!("/v2/suite/workload/manifests/{reference}");
            check(&request("GET", &path).await, 200, &lines, manifest);
            check(&request("HEAD", &path).await, 200, &lines, "\r\n\r\n");
        }
    }

    #[tokio::test]
    async fn the_blobs_are_served() {
        for blob in image().blobs() {
            let path = format!("/v2/suite/workload/blobs/{}", blob.digest());
            let length = format!("content-length: {}", blob.bytes().len());
            let answer = request("GET", &path).await;
            check(
                &answer,
                200,
                &[&length],
                &String::from_utf8_lossy(blob.bytes()),
            );
            check(&request("HEAD", &path).await, 200, &[&length], "\r\n\r\n");
        }
    }

    #[tokio::test]
    async fn what_is_not_there_is_an_error_of_the_protocol() {
        for (path, code) in [
            ("/", "UNSUPPORTED"),
            ("/v2/suite/workload/tags/list", "UNSUPPORTED"),
            ("/v2/suite/other/manifests/test", "NAME_UNKNOWN"),
            ("/v2/suite/workload/manifests/latest", "MANIFEST_UNKNOWN"),
            ("/v2/suite/workload/blobs/sha256:00", "BLOB_UNKNOWN"),
        ] {
            let answer = request("GET", path).await;
            check(&answer, 404, &["content-type: application/json"], "}]}");
            assert!(answer.contains(code), "{code} in {answer}");
        }
    }

    #[tokio::test]
    async fn nothing_can_be_written() {
        let answer = request("POST", "/v2/suite/workload/blobs/uploads/").await;
        check(&answer, 405, &["allow: GET, HEAD"], "}]}");
    }

    #[tokio::test]
    async fn a_tls_handshake_is_answered_in_http() {
        let answer = exchange(&registry().await, b"\x16\x03\x01\x00\x05hello").await;
        check(&answer, 400, &["Connection: close"], "\r\n\r\n");
    }

    #[tokio::test]
    async fn silent_clients_delay_nobody() {
        let registry = registry().await;
        let mut silent = Vec::new();
        for _ in 1..CONNECTIONS {
            silent.push(TcpStream::connect(registry.address()).await.unwrap());
        }
        let answer = exchange(&registry, HELLO).await;
        check(&answer, 200, &[], "{}");
    }

    #[tokio::test]
    async fn a_client_beyond_the_limit_waits_for_a_slot() {
        let registry = registry().await;
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS {
            silent.push(TcpStream::connect(registry.address()).await.unwrap());
        }
        let mut exchange = Box::pin(exchange(&registry, HELLO));
        assert!(
            timeout(Duration::from_millis(100), &mut exchange)
                .await
                .is_err()
        );
        silent.pop();
        check(&exchange.await, 200, &[], "{}");
    }

    #[tokio::test]
    async fn dropping_it_ends_the_server_and_its_connections() {
        let registry = registry().await;
        let address = registry.address();
        let mut open = TcpStream::connect(address).await.unwrap();
        open.write_all(b"GET /v2/ HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        assert!(open.read(&mut [0; 1024]).await.unwrap() > 0);
        drop(registry);
        assert_eq!(open.read(&mut [0; 1024]).await.unwrap_or(0), 0);
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn the_reference_names_the_address() {
        let registry = registry().await;
        let port = registry.address().port();
        assert_eq!(
            registry.reference(),
            format!("127.0.0.1:{port}/suite/workload:test")
        );
    }
}
