//! The connection settings in crictl's configuration file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::files;
use crate::yaml;

const DEFAULT_PATH: &str = "/etc/crictl.yaml";
const LARGEST_BYTES: u64 = 64 << 10;

/// The content of the file; other keys of crictl are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    default,
    expecting = "keys and values, such as `runtime-endpoint: unix:///run/containerd/containerd.sock`"
)]
pub(super) struct Config {
    pub(super) runtime_endpoint: String,
    pub(super) image_endpoint: String,
    /// Seconds; 0 for the default.
    timeout: u64,
    #[serde(skip)]
    pub(super) path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
#[error("the configuration file {}: {detail}", path.display())]
pub(super) struct ConfigError {
    path: PathBuf,
    detail: String,
}

impl Config {
    /// Reads the given file, or the default one if it exists.
    pub(super) fn read(named: Option<&Path>) -> Result<Self, ConfigError> {
        let path = named.unwrap_or(Path::new(DEFAULT_PATH));
        let failed = |detail: String| ConfigError {
            path: path.to_owned(),
            detail,
        };
        let text = match files::read_text(path, LARGEST_BYTES) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound && named.is_none() => {
                return Ok(Self::default());
            }
            read => read.map_err(|fault| failed(fault.to_string()))?,
        };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let config = yaml::read(&text).map_err(|fault| failed(fault.to_string()))?;
        Ok(Self {
            path: path.to_owned(),
            ..config
        })
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        (self.timeout > 0).then(|| Duration::from_secs(self.timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crictls_own_keys_are_read_and_its_others_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crictl.yaml");
        let text = "runtime-endpoint: unix:///a\nimage-endpoint: unix:///b\ntimeout: 7\n\
                    debug: true\npull-image-on-create: false\n";
        std::fs::write(&path, text).unwrap();
        let config = Config::read(Some(&path)).unwrap();
        assert_eq!(config.runtime_endpoint, "unix:///a");
        assert_eq!(config.image_endpoint, "unix:///b");
        assert_eq!(config.timeout(), Some(Duration::from_secs(7)));
    }

    #[test]
    fn a_named_file_must_be_there_and_be_yaml() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.yaml");
        assert!(Config::read(Some(&missing)).is_err());
        let garbled = folder.path().join("garbled.yaml");
        std::fs::write(&garbled, "timeout: [").unwrap();
        assert!(Config::read(Some(&garbled)).is_err());
        std::fs::write(&garbled, "").unwrap();
        assert_eq!(Config::read(Some(&garbled)).unwrap(), Config::default());
    }
}
