//! A directory in the place of `/`: this host's root, that of a process, or one of a test.

use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::chroot;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::command::{self, CommandError};
use crate::files::{self, FileId, Folder, is_trusted_user};

/// The largest file that is read: configuration files have some kilobytes.
const LARGEST_BYTES: u64 = 1 << 20;
/// The maximum number of entries of a directory that are listed.
const ENTRIES: usize = 100_000;

/// The path of the host's root directory in a pod of `kubectl debug node/NODE`:
/// <https://kubernetes.io/docs/tasks/debug/debug-cluster/kubectl-node-debug/>.
const MOUNTED_HOST: &str = "/host";
/// A variable that a kubelet gives each container.
const POD_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";
/// The first argument of this program as one that becomes a program of a mounted host.
const RUNNER: &str = "run-program-of-host";

/// A directory in the place of `/`. Links are resolved inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTree {
    root: PathBuf,
}

impl Default for FileTree {
    /// The root of this process.
    fn default() -> Self {
        Self::at("/")
    }
}

impl FileTree {
    /// The tree at this path of this process.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The host's tree: `/host` if that is the root directory of process 1, and not that of this
    /// process, as in a privileged pod with the host's processes; else `/`.
    pub fn host() -> Self {
        let host = root_of_host().filter(|host| identity("/") != Some(*host));
        let is_mounted = host.is_some() && host == identity(MOUNTED_HOST);
        Self::at(if is_mounted { MOUNTED_HOST } else { "/" })
    }

    /// Its root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path in this process of an existing file of the tree, without links; that of this
    /// process's own tree stays as it is.
    pub fn locate(&self, path: &Path) -> io::Result<PathBuf> {
        if self.root == Path::new("/") {
            return Ok(path.to_owned());
        }
        self.folder()?.path_inside(path)
    }

    /// The path in the tree of a path of this process.
    pub fn name_inside(&self, path: &Path) -> PathBuf {
        let inside = path.strip_prefix(&self.root);
        inside.map_or_else(|_| path.to_owned(), |inside| Path::new("/").join(inside))
    }

    /// The path in this process of a path in the tree; it is only for links that must not be
    /// resolved inside the tree, such as `/proc/PID/root`.
    pub fn outside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file of at most 1 MiB. Bytes that are not UTF-8 are replaced.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let bytes = files::read_all(self.folder()?.read_inside(path.as_ref())?, LARGEST_BYTES)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first bytes of a file, at most this many.
    pub fn read_start(&self, path: impl AsRef<Path>, bytes: u64) -> io::Result<Vec<u8>> {
        let mut start = Vec::new();
        let file = self.folder()?.read_inside(path.as_ref())?;
        file.take(bytes).read_to_end(&mut start)?;
        Ok(start)
    }

    /// Whether this is a link.
    pub(super) fn is_link(&self, path: &Path) -> bool {
        self.read_link(path).is_ok()
    }

    /// The target of a link. Fails if it cannot be read, or is no link.
    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        self.folder()?.read_link_inside(path.as_ref())
    }

    /// The end of a text file, at most this many bytes, from the beginning of a line.
    pub fn read_end(&self, path: impl AsRef<Path>, bytes: u64) -> io::Result<String> {
        let mut file = self.folder()?.read_inside(path.as_ref())?;
        let skipped = file.metadata()?.len().saturating_sub(bytes);
        file.seek(SeekFrom::Start(skipped))?;
        let mut end = Vec::new();
        file.take(bytes).read_to_end(&mut end)?;
        let text = String::from_utf8_lossy(&end);
        let whole = match skipped {
            0 => &*text,
            _ => text.split_once('\n').map_or("", |(_, whole)| whole),
        };
        Ok(whole.to_owned())
    }

    /// The paths of the entries of a directory, sorted.
    pub fn list(&self, path: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
        let path = path.as_ref();
        let names = self.folder()?.open_inside(path)?.names(ENTRIES)?;
        Ok(names.into_iter().map(|name| path.join(name)).collect())
    }

    /// Runs a program of the tree, as a process of this host, and returns its output, at most 1
    /// MiB. One of `/host` has that as its root directory, for its libraries. Fails if it cannot be
    /// run, fails, or does not end within `bound`.
    pub fn output_of(
        &self,
        program: impl AsRef<Path>,
        arguments: &[&str],
        bound: Duration,
    ) -> Result<String, CommandError> {
        let program = program.as_ref();
        if self.root != Path::new(MOUNTED_HOST) {
            return command::output(&self.outside(program), arguments, bound);
        }
        let named = [RUNNER, MOUNTED_HOST, program.to_str().unwrap_or_default()];
        let this = Path::new("/proc/self/exe");
        command::output(this, &[&named, arguments].concat(), bound)
    }

    /// Runs a program as [`output_of`](Self::output_of) does, but only if no user except for root
    /// and that of this process can have put it there: root must not run foreign programs. Fails if
    /// it cannot be run, belongs to another user, or others can write to it.
    pub(super) fn output_of_trusted(
        &self,
        program: &Path,
        arguments: &[&str],
        bound: Duration,
    ) -> Result<String, CommandError> {
        const WRITABLE_BY_OTHERS: u32 = 0o022;
        let found = files::stat(&self.locate(program)?)?;
        if !is_trusted_user(found.st_uid) || found.st_mode & WRITABLE_BY_OTHERS != 0 {
            let fault = "not run: users other than root can change this program";
            return Err(io::Error::other(fault).into());
        }
        self.output_of(program, arguments, bound)
    }

    /// The identity of a file.
    pub(super) fn identify(&self, path: &Path) -> io::Result<FileId> {
        Ok(files::id(&self.folder()?.stat_inside(path)?))
    }

    fn folder(&self) -> io::Result<Folder> {
        Folder::open(&self.root)
    }
}

/// The advice where [`is_host_hidden`].
pub const HIDDEN_HOST: &str = "use --profile=sysadmin: this pod hides its node";

/// Whether this process is in a pod that hides its host: one without the processes or the files of
/// the host, or without the privilege to see that both are of the same host.
pub fn is_host_hidden() -> bool {
    let sees_host = root_of_host().is_some_and(|host| identity("/") == Some(host));
    // It is process 1 of a pid namespace of its own.
    let is_alone = std::process::id() == 1;
    std::env::var_os(POD_VARIABLE).is_some() && (is_alone || !sees_host)
}

/// The root directory of process 1; `None` if it cannot be seen.
fn root_of_host() -> Option<FileId> {
    identity("/proc/1/root")
}

fn identity(path: &str) -> Option<FileId> {
    files::stat(Path::new(path))
        .ok()
        .map(|found| files::id(&found))
}

/// Replaces this process by a program of a mounted host if [`FileTree::output_of`] has started it
/// for that; returns the error if it cannot.
pub fn run_program_of_host(args: impl IntoIterator<Item = OsString>) -> Option<io::Error> {
    let mut args = args.into_iter().skip(1);
    args.next().filter(|name| name == RUNNER)?;
    let (root, program) = (args.next()?, args.next()?);
    let entered = chroot(root).and_then(|()| std::env::set_current_dir("/"));
    let run = |()| Command::new(program).args(args).exec();
    Some(entered.map_or_else(|fault| fault, run))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, FileTree) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("etc/kubelet")).unwrap();
        fs::write(folder.path().join("etc/hostname"), "node-1\n").unwrap();
        let tree = FileTree::at(folder.path());
        (folder, tree)
    }

    #[test]
    fn links_stay_in_the_tree() {
        let (folder, tree) = tree();
        for (name, target) in [("a", "/etc/hostname"), ("b", "../../../etc/hostname")] {
            symlink(target, folder.path().join(name)).unwrap();
            assert_eq!(tree.read(format!("/{name}")).unwrap(), "node-1\n");
        }
        let here = FileTree::default().identify(&folder.path().join("etc/hostname"));
        assert_eq!(tree.identify(Path::new("/a")).unwrap(), here.unwrap());
        let missing = tree.read("/proc/version").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_located_path_has_no_link_that_leads_out_of_the_tree() {
        let (folder, tree) = tree();
        let place = folder.path().canonicalize().unwrap();
        let [socket, missing] = ["/var/run/a.sock", "/var/run/b.sock"].map(Path::new);
        fs::create_dir_all(place.join("run")).unwrap();
        fs::create_dir(place.join("var")).unwrap();
        fs::write(place.join("run/a.sock"), "").unwrap();
        symlink("/run", place.join("var/run")).unwrap();
        let located = tree.locate(socket).unwrap();
        assert_eq!(located, place.join("run/a.sock"));
        assert_eq!(
            FileTree::at(&place).name_inside(&located),
            Path::new("/run/a.sock")
        );
        let fault = tree.locate(missing).unwrap_err();
        assert_eq!(fault.kind(), io::ErrorKind::NotFound);
        assert_eq!(FileTree::default().locate(missing).unwrap(), missing);
    }

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let (folder, tree) = tree();
        let path = folder.path().join("large");
        fs::write(&path, vec![b'a'; 1 << 20]).unwrap();
        assert_eq!(tree.read("/large").unwrap().len(), 1 << 20);
        fs::write(&path, vec![b'a'; (1 << 20) + 1]).unwrap();
        assert!(tree.read("/large").is_err());
        assert!(tree.read("/etc").is_err());
        // A pipe without a writer does not block.
        let made = std::process::Command::new("mkfifo")
            .arg(folder.path().join("pipe"))
            .status();
        assert!(made.unwrap().success());
        assert!(tree.read("/pipe").is_err());
    }

    #[test]
    fn the_end_of_a_file_begins_with_a_whole_line() {
        let (folder, tree) = tree();
        fs::write(folder.path().join("log"), "first\nsecond\nthird\n").unwrap();
        assert_eq!(
            tree.read_end("/log", 100).unwrap(),
            "first\nsecond\nthird\n"
        );
        assert_eq!(tree.read_end("/log", 9).unwrap(), "third\n");
    }

    #[test]
    fn a_program_that_others_can_change_is_not_run() {
        let (folder, tree) = tree();
        let place = folder.path().join("program");
        let run = |mode: &str| {
            // Written by another program: it cannot be run while it is open for writing here.
            let script = format!("rm -f \"$0\"; echo '#!/bin/sh' >\"$0\" && chmod {mode} \"$0\"");
            let written = std::process::Command::new("sh")
                .args(["-c", &script])
                .arg(&place)
                .status();
            assert!(written.unwrap().success());
            let bound = Duration::from_secs(60);
            tree.output_of_trusted(Path::new("/program"), &[], bound)
        };
        assert!(run("755").is_ok());
        for mode in ["775", "757"] {
            let fault = run(mode).unwrap_err().to_string();
            assert!(fault.contains("not run"), "{fault}");
        }
        // A link of the tree leads to what would be run there.
        symlink("/program", folder.path().join("linked")).unwrap();
        let linked = tree.output_of_trusted(Path::new("/linked"), &[], Duration::from_secs(60));
        let fault = linked.unwrap_err().to_string();
        assert!(fault.contains("not run"), "{fault}");
    }

    #[test]
    fn entries_are_sorted() {
        let (folder, tree) = tree();
        for name in ["20-b.conf", "10-a.conf"] {
            fs::write(folder.path().join("etc/kubelet").join(name), "").unwrap();
        }
        let expected = ["/etc/kubelet/10-a.conf", "/etc/kubelet/20-b.conf"];
        assert_eq!(
            tree.list("/etc/kubelet").unwrap(),
            expected.map(PathBuf::from)
        );
        assert!(tree.list("/etc/hostname").is_err());
    }
}
