//! Endpoints that can be listened on, and authorities of any form.

use tokio::io::AsyncReadExt;

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

fn headers(flags: u8, block: &[u8]) -> Vec<u8> {
    let length = u8::try_from(block.len()).unwrap();
    let mut bytes = vec![0, 0, length, HEADERS, flags, 0, 0, 0, 1];
    bytes.extend_from_slice(block);
    bytes
}

/// Checks the bytes that a server reads, for all ways of splitting them.
#[track_caller]
fn check(frames: &[Vec<u8>], expect: &[Vec<u8>]) {
    let preface = [b'P'; PREFACE].to_vec();
    let sent = [std::slice::from_ref(&preface), frames].concat().concat();
    let expect = [std::slice::from_ref(&preface), expect].concat().concat();
    for part in [1, 2, 7, 10, 25, sent.len()] {
        let parts = sent.chunks(part).rev().map(<[u8]>::to_vec).collect();
        let mut mock = AnyAuthority::new(Parts(parts));
        let mut read = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let done = runtime.unwrap().block_on(mock.read_to_end(&mut read));
        done.unwrap();
        assert_eq!(read, expect, "in parts of {part}");
    }
}

/// A connection that delivers one part per read.
struct Parts(Vec<Vec<u8>>);

impl AsyncRead for Parts {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        to.put_slice(&self.0.pop().unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_path_becomes_a_name() {
    let before = headers(4, b"\x83\x41\x0ctmp%2Fa.sock\x86\x40\x01x\x02%%");
    let mut after = before.clone();
    let percent = after.iter().position(|byte| *byte == b'%').unwrap();
    after[percent] = b'-';
    check(&[before.clone(), before], &[after.clone(), after]);
}

#[test]
fn padding_and_priority_are_passed_over() {
    let before = headers(PADDED | PRIORITY, b"\x01\0\0\0\0\0\x01\x02/s\0");
    let after = headers(PADDED | PRIORITY, b"\x01\0\0\0\0\0\x01\x02-s\0");
    check(&[before], &[after]);
}

#[test]
fn all_else_stays_as_it_is() {
    let settings = vec![0, 0, 6, 4, 0, 0, 0, 0, 0, 0x41, 0x01, b'%', 0, 0, 0];
    let coded = headers(4, b"\x41\x82%%");
    let broken = headers(4, b"\x41\x7f%%");
    let cut = vec![0, 0, 9, HEADERS, 4];
    let all = [settings, coded, broken, cut];
    check(&all, &all);
}

#[test]
fn a_name_that_is_spelled_out_is_found() {
    let before = headers(4, b"\x00\x0a:authority\x03a%b");
    let after = headers(4, b"\x00\x0a:authority\x03a-b");
    check(&[before], &[after]);
}
