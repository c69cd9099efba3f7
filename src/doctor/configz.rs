//! A kubelet's effective configuration, from its endpoint `/configz`.

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;

use crate::host::FileTree;

/// The maximum size of a reply: a kubelet's configuration has some kilobytes, its metrics some
/// hundred.
const LONGEST: usize = 16 << 20;
/// The timeout of a reply.
const BOUND: Duration = Duration::from_secs(10);

/// The part of the configuration that matters for events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct KubeletConfig {
    pub(super) feature_gates: std::collections::BTreeMap<String, bool>,
}

#[derive(Deserialize)]
struct Answer {
    kubeletconfig: KubeletConfig,
}

/// Reads the configuration from a URL or a file.
pub(super) async fn read(origin: &str) -> Result<KubeletConfig, String> {
    parse(&text(origin).await?)
}

/// Reads a kubelet's reply from a URL or a file.
pub(super) async fn text(origin: &str) -> Result<String, String> {
    if origin.starts_with("https:") {
        return Err(
            "only http:// is supported; run `kubectl proxy`, or save the answer of `kubectl get \
             --raw /api/v1/nodes/NODE/proxy/...` and give the file"
                .to_owned(),
        );
    }
    if origin.starts_with("http:") {
        let fetched = tokio::time::timeout(BOUND, fetch(origin)).await;
        return fetched.map_err(|_| format!("no answer within {BOUND:?}"))?;
    }
    let path = std::path::absolute(Path::new(origin)).map_err(|fault| fault.to_string())?;
    let read = FileTree::default().read_start(path, LONGEST as u64);
    let read = read.map_err(|fault| fault.to_string())?;
    Ok(String::from_utf8_lossy(&read).into_owned())
}

async fn fetch(url: &str) -> Result<String, String> {
    let uri = url
        .parse()
        .map_err(|fault| format!("it is no URL: {fault}"))?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let answer = client.get(uri).await;
    let answer = answer.map_err(|fault| {
        let cause = std::error::Error::source(&fault).map(ToString::to_string);
        cause.unwrap_or_else(|| fault.to_string())
    })?;
    let status = answer.status();
    if !status.is_success() {
        return Err(format!("the answer is {status}"));
    }
    let body = axum::body::to_bytes(Body::new(answer.into_body()), LONGEST).await;
    let body = body.map_err(|fault| fault.to_string())?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn parse(text: &str) -> Result<KubeletConfig, String> {
    let parsed: Result<Answer, _> = serde_json::from_str(text);
    let answer = parsed.map_err(|fault| format!("it is no answer of /configz: {fault}"))?;
    Ok(answer.kubeletconfig)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;

    use super::*;

    const ANSWER: &str = r#"{"kubeletconfig":{"featureGates":{"EventedPLEG":true},"port":10250}}"#;

    #[test]
    fn the_gates_are_read() {
        let config = parse(ANSWER).unwrap();
        assert_eq!(config.feature_gates.get("EventedPLEG"), Some(&true));
        let config = parse(r#"{"kubeletconfig":{"port":10250}}"#).unwrap();
        assert!(config.feature_gates.is_empty());
        assert!(parse(r#"{"kind":"Status","code":403}"#).is_err());
    }

    #[tokio::test]
    async fn it_is_fetched_from_a_server() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new().route("/configz", get(|| async { ANSWER }));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await });
        let fetched = read(&format!("http://{address}/configz")).await.unwrap();
        assert_eq!(fetched, parse(ANSWER).unwrap());
        let missing = read(&format!("http://{address}/other")).await.unwrap_err();
        assert_eq!(missing, "the answer is 404 Not Found");
        server.abort();
        let https = read("https://127.0.0.1:10250/configz").await.unwrap_err();
        assert!(https.contains("kubectl proxy"), "{https}");
    }
}
