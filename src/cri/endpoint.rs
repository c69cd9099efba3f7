//! Endpoints of runtimes: `unix:///path`, a path alone as crictl accepts it, or a server in this
//! process.

use std::fmt;
use std::future::{Ready, ready};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use rustix::fs::FileType;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc::UnboundedSender;
use tonic::codegen::Service;
use tonic::transport::Uri;

use crate::files;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Socket(PathBuf),
    /// A server in this process, see [`Listener::in_process`](super::Listener::in_process).
    InProcess(InProcess),
}

/// A connector to a server in this process.
#[derive(Clone, Debug)]
pub struct InProcess {
    name: Arc<str>,
    dial: UnboundedSender<DuplexStream>,
}

/// The reason why a text is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("the endpoint is empty; write it as unix:///run/containerd/containerd.sock")]
    Empty,
    #[error(
        "`{0}` is not an absolute path; write it as unix:///run/containerd/containerd.sock, or \
         `model` for the runtime that needs none"
    )]
    NotAbsolute(String),
    #[error(
        "the scheme of `{0}` is not supported: a CRI runtime is reached through a unix socket, \
         such as unix:///run/containerd/containerd.sock"
    )]
    Scheme(String),
    #[error("`{0}` is longer than the 107 bytes that a unix socket's path may have")]
    TooLong(String),
}

/// The reason why the file of an endpoint cannot be connected to.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("there is no socket {0}; is the runtime running, and is this its endpoint?")]
    Missing(PathBuf),
    #[error("{0} is a {1}, not a socket; give the runtime's socket itself")]
    NotASocket(PathBuf, &'static str),
    #[error("permission to use {0} is denied; run as root, or as a user of the socket's group")]
    Denied(PathBuf),
    #[error("cannot use {0}: {1}")]
    Other(PathBuf, #[source] io::Error),
}

impl Endpoint {
    /// The path of its socket; `None` for a server in this process.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Socket(path) => Some(path),
            Self::InProcess(_) => None,
        }
    }

    /// Checks that the socket exists and may be connected to.
    pub fn check(&self) -> Result<(), SocketError> {
        match self {
            Self::Socket(path) => check(path),
            Self::InProcess(_) => Ok(()),
        }
    }
}

fn check(path: &Path) -> Result<(), SocketError> {
    let found = files::stat(path).map_err(|fault| socket_fault(path, fault))?;
    let other = match files::kind(&found) {
        FileType::Socket => None,
        FileType::Directory => Some("directory"),
        _ => Some("file of another kind"),
    };
    if let Some(what) = other {
        return Err(SocketError::NotASocket(path.to_owned(), what));
    }
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK)
        .map_err(|fault| socket_fault(path, fault.into()))
}

fn socket_fault(path: &Path, fault: io::Error) -> SocketError {
    let path = path.to_owned();
    match fault.kind() {
        io::ErrorKind::NotFound => SocketError::Missing(path),
        io::ErrorKind::PermissionDenied => SocketError::Denied(path),
        _ => SocketError::Other(path, fault),
    }
}

impl InProcess {
    pub(super) fn new(name: &str, dial: UnboundedSender<DuplexStream>) -> Self {
        let name = Arc::from(name);
        Self { name, dial }
    }

    pub(super) fn dial(&self) -> io::Result<DuplexStream> {
        /// Roughly the default buffer size of a socket.
        const BUFFER_BYTES: usize = 128 << 10;
        let (ours, theirs) = duplex(BUFFER_BYTES);
        let refused = |_| io::ErrorKind::ConnectionRefused;
        self.dial.send(theirs).map_err(refused)?;
        Ok(ours)
    }
}

impl PartialEq for InProcess {
    fn eq(&self, other: &Self) -> bool {
        self.dial.same_channel(&other.dial)
    }
}

impl Eq for InProcess {}

/// Makes connections for gRPC's transport.
impl Service<Uri> for InProcess {
    type Response = TokioIo<DuplexStream>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.dial().map(TokioIo::new))
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        const LONGEST: usize = 107;
        let path = match text.split_once(':') {
            Some(("unix", rest)) => rest.strip_prefix("//").unwrap_or(rest),
            Some((scheme, _)) if !scheme.contains('/') => {
                return Err(EndpointError::Scheme(text.to_owned()));
            }
            _ => text,
        };
        if path.is_empty() {
            return Err(EndpointError::Empty);
        }
        if !path.starts_with('/') {
            return Err(EndpointError::NotAbsolute(text.to_owned()));
        }
        if path.len() > LONGEST {
            return Err(EndpointError::TooLong(text.to_owned()));
        }
        Ok(Self::Socket(PathBuf::from(path)))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix://{}", path.display()),
            Self::InProcess(InProcess { name, .. }) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let got = match text.parse::<Endpoint>() {
            Ok(endpoint) => endpoint.to_string(),
            Err(fault) => format!("{fault:?}"),
        };
        assert_eq!(got, expect);
    }

    #[test]
    fn the_forms_that_crictl_takes_are_taken() {
        check("unix:///run/c.sock", "unix:///run/c.sock");
        check("unix:/run/c.sock", "unix:///run/c.sock");
        check("/run/c.sock", "unix:///run/c.sock");
    }

    #[test]
    fn invalid_endpoints_are_rejected_with_a_reason() {
        check("", "Empty");
        check("unix://", "Empty");
        check("run/c.sock", r#"NotAbsolute("run/c.sock")"#);
        check("unix://run/c.sock", r#"NotAbsolute("unix://run/c.sock")"#);
        check("tcp://127.0.0.1:1", r#"Scheme("tcp://127.0.0.1:1")"#);
        check("npipe:////./pipe/x", r#"Scheme("npipe:////./pipe/x")"#);
        assert!(matches!(
            format!("/{}", "x".repeat(200)).parse::<Endpoint>(),
            Err(EndpointError::TooLong(_))
        ));
    }

    #[test]
    fn a_file_in_the_place_of_the_socket_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = |path: &Path| path.to_str().unwrap().parse::<Endpoint>().unwrap();
        let missing = folder.path().join("missing");
        assert!(matches!(
            endpoint(&missing).check(),
            Err(SocketError::Missing(_))
        ));
        let in_the_way = endpoint(folder.path()).check();
        assert!(matches!(
            in_the_way,
            Err(SocketError::NotASocket(_, "directory"))
        ));
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(
            endpoint(&file).check(),
            Err(SocketError::NotASocket(..))
        ));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        if crate::files::tests::give_away(&link) {
            let refused = endpoint(&link).check().unwrap_err().to_string();
            assert!(refused.contains("a link of user 65534"), "{refused}");
        }
    }
}
