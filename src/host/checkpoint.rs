//! Damages the checkpoint of a container, so that its restore fails.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::Kernel;
use crate::files::{self, Folder};
use crate::history::ContainerSpec;

/// The folder in the archive with what CRIU has written, which a runtime does not look into when it
/// creates the container.
const PROCESSES: &str = "checkpoint/";
/// The largest archive that is copied: that of the suite's own program has some 100 KiB.
const ARCHIVE_BYTES: u64 = 256 << 20;
/// The mode of the copy: the runtime, which reads it, is root.
const MODE: u32 = 0o600;

impl Kernel {
    /// Copies a checkpoint, and zeroes what is known of the processes in the copy. On a simulated
    /// kernel there are no files. Fails if the archive cannot be read here, is compressed or has no
    /// processes, or the copy cannot be written.
    pub fn damage_checkpoint(&self, archive: &Path, copy: &Path) -> io::Result<()> {
        self.on_host(Ok(()), || damage(archive, copy))
    }

    /// Removes a checkpoint and its damaged copy. What cannot be removed goes with the run's logs.
    pub fn remove_checkpoint(&self, archive: &str) {
        if let Self::Host = self {
            for file in [archive, &format!("{archive}{}", ContainerSpec::DAMAGED)] {
                let path = Path::new(file);
                if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
                    let _ = Folder::open(parent).and_then(|folder| folder.remove(name));
                }
            }
        }
    }
}

fn damage(archive: &Path, copy: &Path) -> io::Result<()> {
    let mut whole = files::open(archive)?;
    let (Some(folder), Some(name)) = (copy.parent(), copy.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let mut file = Folder::open(folder)?.create_file(name, MODE)?;
    let length = io::copy(&mut (&mut whole).take(ARCHIVE_BYTES + 1), &mut file)?;
    if length > ARCHIVE_BYTES {
        let limit = ARCHIVE_BYTES >> 20;
        return Err(io::Error::other(format!(
            "the archive is larger than {limit} MiB"
        )));
    }
    whole.rewind()?;
    let mut archive = tar::Archive::new(whole);
    let mut is_damaged = false;
    for entry in archive.entries()? {
        let entry = entry?;
        if entry.size() == 0 || !entry.path()?.starts_with(PROCESSES) {
            continue;
        }
        let at = entry.raw_file_position();
        // A header may promise more than the archive has.
        if entry.size() > length.saturating_sub(at) {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the archive is cut short",
            ));
        }
        file.seek(SeekFrom::Start(at))?;
        io::copy(&mut io::repeat(0).take(entry.size()), &mut file)?;
        is_damaged = true;
    }
    let none = || io::Error::new(ErrorKind::InvalidData, "the archive holds no processes");
    is_damaged.then_some(()).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// An archive with these files.
    fn archive(path: &Path, files: &[(&str, &str)]) {
        let mut archive = tar::Builder::new(File::create(path).unwrap());
        for (name, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            archive
                .append_data(&mut header, name, text.as_bytes())
                .unwrap();
        }
        archive.finish().unwrap();
    }

    fn read(path: &Path) -> Vec<(String, String)> {
        let mut archive = tar::Archive::new(File::open(path).unwrap());
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), text)
        });
        entries.collect()
    }

    #[test]
    fn a_damaged_checkpoint_keeps_all_but_the_processes() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, copy) = (folder.path().join("a"), folder.path().join("b"));
        let files = [("config.dump", "{}"), ("checkpoint/pages-1.img", "abc")];
        archive(&whole, &files);
        damage(&whole, &copy).unwrap();
        let text = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        assert_eq!(read(&whole), files.map(text));
        let damaged = [files[0], (files[1].0, "\0\0\0")];
        assert_eq!(read(&copy), damaged.map(text));
    }

    #[test]
    fn a_checkpoint_is_removed_with_its_copy_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["a.tar", "a.tar.damaged", "b.tar"] {
            fs::write(path(name), "").unwrap();
        }
        Kernel::Host.remove_checkpoint(path("a.tar").to_str().unwrap());
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert!(path("b.tar").exists());
    }

    #[test]
    fn what_is_no_checkpoint_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, copy) = (folder.path().join("a"), folder.path().join("b"));
        assert_eq!(
            damage(&whole, &copy).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        archive(&whole, &[("config.dump", "{}")]);
        let refused = damage(&whole, &copy).unwrap_err();
        assert_eq!(refused.to_string(), "the archive holds no processes");
        fs::write(&whole, [0x1f; 600]).unwrap();
        damage(&whole, &copy).unwrap_err();
    }

    #[test]
    fn a_header_that_promises_more_than_there_is_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, copy) = (folder.path().join("a"), folder.path().join("b"));
        let mut header = tar::Header::new_gnu();
        header.set_path("checkpoint/pages-1.img").unwrap();
        header.set_size(1 << 62);
        header.set_cksum();
        fs::write(&whole, header.as_bytes()).unwrap();
        let refused = damage(&whole, &copy).unwrap_err();
        assert_eq!(refused.to_string(), "the archive is cut short");
    }

    #[test]
    fn a_pipe_in_place_of_a_checkpoint_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, copy) = (folder.path().join("a"), folder.path().join("b"));
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &whole, kind, mode, 0).unwrap();
        let refused = damage(&whole, &copy).unwrap_err();
        assert_eq!(refused.to_string(), "it is not a regular file");
    }
}
