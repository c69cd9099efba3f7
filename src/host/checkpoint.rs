//! Damages the checkpoint of a container, so that its restore fails.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Kernel;
use crate::history::ContainerSpec;

/// The folder in the archive with what CRIU has written, which a runtime does not look into when it
/// creates the container.
const PROCESSES: &str = "checkpoint/";

impl Kernel {
    /// Copies a checkpoint, and zeroes what is known of the processes in the copy. On a simulated
    /// kernel there are no files.
    ///
    /// # Errors
    /// If the archive cannot be read here, is compressed or has no processes, or the copy cannot be
    /// written.
    pub fn damage_checkpoint(&self, archive: &Path, copy: &Path) -> io::Result<()> {
        match self {
            Self::Host => damage(archive, copy),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Removes a checkpoint and its damaged copy. What cannot be removed goes with the run's logs.
    pub fn remove_checkpoint(&self, archive: &str) {
        if let Self::Host = self {
            for file in [archive, &format!("{archive}{}", ContainerSpec::DAMAGED)] {
                let _ = fs::remove_file(file);
            }
        }
    }
}

fn damage(archive: &Path, copy: &Path) -> io::Result<()> {
    fs::copy(archive, copy)?;
    let file = OpenOptions::new().write(true).open(copy)?;
    let mut archive = tar::Archive::new(File::open(archive)?);
    let mut is_damaged = false;
    for entry in archive.entries()? {
        let entry = entry?;
        if entry.size() > 0 && entry.path()?.starts_with(PROCESSES) {
            let zeroes = vec![0; usize::try_from(entry.size()).map_err(io::Error::other)?];
            file.write_all_at(&zeroes, entry.raw_file_position())?;
            is_damaged = true;
        }
    }
    let none = || io::Error::new(ErrorKind::InvalidData, "the archive holds no processes");
    is_damaged.then_some(()).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

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
}
