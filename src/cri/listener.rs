//! Listening for connections: on a socket, or within this process.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use tempfile::{Builder, TempDir};
use tokio::io::DuplexStream;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_stream::Stream;
use tokio_stream::wrappers::UnixListenerStream;

use super::endpoint::{Endpoint, InProcess};
use crate::files::Folder;

/// A listener. When it is dropped, its socket file is removed.
#[derive(Debug)]
pub struct Listener {
    incoming: Option<Incoming>,
    _file: Option<SocketFile>,
}

#[derive(Debug)]
pub(super) enum Incoming {
    Socket(UnixListenerStream),
    InProcess(Connections),
}

/// The reason why a listener cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("a server already listens on {0}; choose another path, or stop that server first")]
    InUse(PathBuf),
    #[error("{0} exists and is no socket; choose another path, or remove it yourself")]
    Exists(PathBuf),
    /// An endpoint within this process, which always has a listener.
    #[error("{0} is no socket; name a path, such as unix:///tmp/cri.sock")]
    NoSocket(Endpoint),
    #[error("listen on {0}: {1}")]
    System(PathBuf, #[source] io::Error),
}

impl Listener {
    /// An endpoint within this process, and its listener.
    pub fn in_process(name: &str) -> (Endpoint, Self) {
        let (dial, calls) = unbounded_channel();
        let listener = Self {
            incoming: Some(Incoming::InProcess(Connections(calls))),
            _file: None,
        };
        (Endpoint::InProcess(InProcess::new(name, dial)), listener)
    }

    /// Listens on a socket that only this user may use. The socket of a dead server is replaced.
    pub async fn bind(endpoint: &Endpoint) -> Result<Self, ListenError> {
        let Endpoint::Socket(path) = endpoint else {
            return Err(ListenError::NoSocket(endpoint.clone()));
        };
        let system = |fault| ListenError::System(path.clone(), fault);
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        Folder::open_safe(above).map_err(system)?;
        make_room(path).await?;
        // Bound in a private folder and then moved, so that no other user can connect to it or
        // replace it at any time.
        let folder = private_folder_in(above).map_err(system)?;
        let private = folder.path().join("s");
        let listener = UnixListener::bind(&private).map_err(system)?;
        let moved = fs::set_permissions(&private, Permissions::from_mode(0o600))
            .and_then(|()| fs::hard_link(&private, path));
        match moved {
            Ok(()) => {}
            Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {
                return Err(ListenError::InUse(path.clone()));
            }
            Err(fault) => return Err(system(fault)),
        }
        let made = fs::metadata(path).map_err(system)?;
        Ok(Self {
            incoming: Some(Incoming::Socket(UnixListenerStream::new(listener))),
            _file: Some(SocketFile {
                path: path.clone(),
                inode: made.ino(),
            }),
        })
    }

    pub(super) fn incoming(&mut self) -> Incoming {
        self.incoming.take().expect("a listener is served once")
    }
}

/// A temporary folder, accessible to its owner only.
fn private_folder_in(folder: &Path) -> io::Result<TempDir> {
    Builder::new()
        .prefix(".")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(folder)
}

/// Removes the socket of a dead server.
async fn make_room(path: &Path) -> Result<(), ListenError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(fault) => return Err(ListenError::System(path.to_owned(), fault)),
    };
    if !found.file_type().is_socket() {
        return Err(ListenError::Exists(path.to_owned()));
    }
    match UnixStream::connect(path).await {
        Err(fault) if fault.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|fault| ListenError::System(path.to_owned(), fault))
        }
        Ok(_) => Err(ListenError::InUse(path.to_owned())),
        Err(fault) => Err(ListenError::System(path.to_owned(), fault)),
    }
}

/// A socket's file, removed with its listener unless it has been replaced.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            // If it stays, the next server replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Connections from within this process.
#[derive(Debug)]
pub(super) struct Connections(UnboundedReceiver<DuplexStream>);

impl Stream for Connections {
    type Item = io::Result<DuplexStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|connection| connection.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(path: &Path) -> Endpoint {
        Endpoint::Socket(path.to_owned())
    }

    #[tokio::test]
    async fn a_socket_is_private_and_goes_with_its_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cri.sock");
        let listener = Listener::bind(&endpoint(&path)).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let taken = Listener::bind(&endpoint(&path)).await;
        assert!(matches!(taken, Err(ListenError::InUse(_))));
        drop(listener);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn none_is_made_where_others_could_exchange_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cri.sock");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let refused = Listener::bind(&endpoint(&path)).await;
        assert!(matches!(refused, Err(ListenError::System(..))));
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        Listener::bind(&endpoint(&path)).await.unwrap();
    }

    #[tokio::test]
    async fn only_a_dead_socket_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cri.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Listener::bind(&endpoint(&path)).await.unwrap());
        fs::write(&path, "mine").unwrap();
        let refused = Listener::bind(&endpoint(&path)).await;
        assert!(matches!(refused, Err(ListenError::Exists(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
