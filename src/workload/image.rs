//! Builds an OCI image in memory with one static program as its only file: the workload, or the
//! suite itself.
//!
//! The module handles the formats of images and archives, and no runtimes. Builds are reproducible:
//! the same labels and architecture give the same image, and different labels different ids.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use super::program::{PROGRAM, PROGRAM_PATH};

/// The media type of an image's manifest.
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// The mount points that runtimes need, with their modes.
const DIRECTORIES: [(&str, u32); 5] = [
    ("dev/", 0o755),
    ("etc/", 0o755),
    ("proc/", 0o755),
    ("sys/", 0o755),
    ("tmp/", 0o1777),
];

/// Content and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// `sha256:` and the digest in hexadecimal.
    digest: String,
    bytes: Vec<u8>,
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        let mut digest = "sha256:".to_owned();
        for byte in Sha256::digest(&bytes) {
            write!(digest, "{byte:02x}").expect("a String takes every write");
        }
        Self { digest, bytes }
    }

    fn json(value: &Value) -> Self {
        Self::new(value.to_string().into_bytes())
    }

    /// The digest, `sha256:` and 64 hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn hex(&self) -> &str {
        self.digest.trim_start_matches("sha256:")
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": self.digest, "size": self.bytes.len() })
    }
}

/// The path of the suite in its own image.
const SUITE_PATH: &str = "/cri-event-conformance";
/// The commands that are links to the suite in its image: `kubectl debug node/NODE -- doctor` runs
/// `doctor` in the place of the image's entry point.
pub const LINKS: [&str; 2] = ["doctor", "watch"];
/// The path of programs on a node whose root directory the suite has changed to.
const SUITE_ENVIRONMENT: [&str; 1] = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"];

/// An image whose entry point is its only program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    layer: Blob,
    config: Blob,
    manifest: Blob,
}

impl Image {
    /// Builds the image of the workload program with these labels.
    ///
    /// Its entry point has no argument, as the init of a sandbox requires: the image is also usable
    /// as a runtime's sandbox image.
    pub fn build(labels: &BTreeMap<Arc<str>, Arc<str>>) -> Self {
        // Some OCI runtimes refuse a process without a PATH.
        let config = json!({
            "Entrypoint": [PROGRAM_PATH],
            "Env": ["PATH=/"],
            "WorkingDir": "/",
            "Labels": labels,
        });
        Self::with_program((PROGRAM_PATH, PROGRAM), &[], &config)
    }

    /// Builds the image of the suite with this program.
    pub fn of_suite(program: &[u8]) -> Self {
        let config = json!({
            "Entrypoint": [SUITE_PATH],
            "Env": SUITE_ENVIRONMENT,
            "WorkingDir": "/",
            "Labels": {
                "org.opencontainers.image.description": env!("CARGO_PKG_DESCRIPTION"),
                "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
                "org.opencontainers.image.title": env!("CARGO_PKG_NAME"),
                "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
            },
        });
        Self::with_program((SUITE_PATH, program), &LINKS, &config)
    }

    fn with_program(program: (&str, &[u8]), links: &[&str], container: &Value) -> Self {
        let layer = Blob::new(layer(program, links));
        let config = Blob::json(&json!({
            "created": "1970-01-01T00:00:00Z",
            "architecture": architecture(),
            "os": "linux",
            "config": container,
            "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
            "history": [{
                "created": "1970-01-01T00:00:00Z",
                "created_by": concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")),
            }],
        }));
        let manifest = Blob::json(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": config.descriptor(CONFIG_TYPE),
            "layers": [layer.descriptor(LAYER_TYPE)],
        }));
        Self {
            layer,
            config,
            manifest,
        }
    }

    /// The image's id, as a runtime reports it: the digest of its configuration.
    pub fn id(&self) -> &str {
        self.config.digest()
    }

    /// The digest of the manifest, for a reference by digest.
    pub fn manifest_digest(&self) -> &str {
        self.manifest.digest()
    }

    pub fn manifest(&self) -> &Blob {
        &self.manifest
    }

    /// The blobs in the manifest: the configuration and the layer.
    pub fn blobs(&self) -> [&Blob; 2] {
        [&self.config, &self.layer]
    }

    /// Writes the image as `docker save` does. Each tag is a full reference, such as
    /// `localhost/name:tag`.
    pub fn write_docker_archive(&self, tags: &[String], out: impl Write) -> io::Result<()> {
        let config_path = format!("{}.json", self.config.hex());
        let layer_path = format!("{}/layer.tar", self.layer.hex());
        let manifest = json!([{ "Config": config_path, "RepoTags": tags, "Layers": [layer_path] }]);
        let mut archive = Archive::new(out);
        archive.file("manifest.json", 0o644, manifest.to_string().as_bytes())?;
        archive.file(&config_path, 0o644, self.config.bytes())?;
        archive.directory(&format!("{}/", self.layer.hex()), 0o755)?;
        archive.file(&layer_path, 0o644, self.layer.bytes())?;
        archive.finish()
    }

    /// Writes the image as an archive of the OCI image layout. Each tag is a full reference, such
    /// as `localhost/name:tag`; without any the image has no name in the archive.
    pub fn write_oci_archive(&self, tags: &[String], out: impl Write) -> io::Result<()> {
        let index = json!({
            "schemaVersion": 2,
            "mediaType": INDEX_TYPE,
            "manifests": self.index_entries(tags),
        });
        let mut archive = Archive::new(out);
        archive.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        archive.file("index.json", 0o644, index.to_string().as_bytes())?;
        archive.directory("blobs/", 0o755)?;
        archive.directory("blobs/sha256/", 0o755)?;
        for blob in [&self.manifest, &self.config, &self.layer] {
            archive.file(&format!("blobs/sha256/{}", blob.hex()), 0o644, blob.bytes())?;
        }
        archive.finish()
    }

    /// One descriptor of the manifest per tag, since an annotation holds one name. The first of
    /// them is containerd's, with the full name; the other is the tag alone, as the format says.
    fn index_entries(&self, tags: &[String]) -> Vec<Value> {
        let mut entry = self.manifest.descriptor(MANIFEST_TYPE);
        entry["platform"] = json!({ "architecture": architecture(), "os": "linux" });
        if tags.is_empty() {
            return vec![entry];
        }
        let named = tags.iter().map(|tag| {
            let mut entry = entry.clone();
            let short = tag.rsplit_once(':').map_or("latest", |(_, short)| short);
            entry["annotations"] = json!({
                "io.containerd.image.name": tag,
                "org.opencontainers.image.ref.name": short,
            });
            entry
        });
        named.collect()
    }
}

/// The file system of an image with a program at this path, and links to it in `/bin`,
/// uncompressed.
fn layer((path, program): (&str, &[u8]), links: &[&str]) -> Vec<u8> {
    let mut archive = Archive::new(Vec::new());
    let mut write = || {
        for (path, mode) in DIRECTORIES {
            archive.directory(path, mode)?;
        }
        if !links.is_empty() {
            archive.directory("bin/", 0o755)?;
        }
        for link in links {
            archive.link(&format!("bin/{link}"), path)?;
        }
        archive.file(path.trim_start_matches('/'), 0o755, program)
    };
    write()
        .and_then(|()| archive.0.into_inner())
        .expect("a Vec takes every write")
}

/// The architecture of this build, by its Go name.
fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    }
}

/// A tar archive whose entries belong to root and have no timestamp.
struct Archive<W: Write>(tar::Builder<W>);

impl<W: Write> Archive<W> {
    fn new(out: W) -> Self {
        Self(tar::Builder::new(out))
    }

    fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.entry(EntryType::Regular, path, mode, bytes)
    }

    fn directory(&mut self, path: &str, mode: u32) -> io::Result<()> {
        self.entry(EntryType::Directory, path, mode, &[])
    }

    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.0.append_link(
            &mut Self::header(EntryType::Symlink, 0o777, 0),
            path,
            target,
        )
    }

    fn entry(&mut self, kind: EntryType, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        let mut header = Self::header(kind, mode, bytes.len() as u64);
        self.0.append_data(&mut header, path, bytes)
    }

    fn header(kind: EntryType, mode: u32, bytes: u64) -> Header {
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(bytes);
        header
    }

    fn finish(self) -> io::Result<()> {
        self.0.into_inner()?.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn image() -> Image {
        Image::build(&BTreeMap::from([("run".into(), "7".into())]))
    }

    fn unpack(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(archive).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            files.insert(path, bytes);
        }
        files
    }

    fn parse(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    fn digest(bytes: &[u8]) -> String {
        Blob::new(bytes.to_vec()).digest
    }

    #[test]
    fn a_digest_is_sha256_in_hexadecimal() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest(b""), empty);
    }

    #[test]
    fn an_image_follows_from_its_labels() {
        assert_eq!(image(), image());
        let other = Image::build(&BTreeMap::new());
        assert_ne!(image().id(), other.id());
        assert_ne!(image().manifest_digest(), other.manifest_digest());
    }

    #[test]
    fn the_layer_holds_the_program_for_root_to_run() {
        let layer = layer((PROGRAM_PATH, PROGRAM), &[]);
        let mut archive = tar::Archive::new(layer.as_slice());
        let entries: Vec<_> = archive.entries().unwrap().map(Result::unwrap).collect();
        for entry in &entries {
            let header = entry.header();
            assert_eq!(
                (
                    header.uid().unwrap(),
                    header.gid().unwrap(),
                    header.mtime().unwrap()
                ),
                (0, 0, 0)
            );
        }
        let program = entries.last().unwrap();
        assert_eq!(program.path().unwrap().to_str(), Some("workload"));
        assert_eq!(program.header().mode().unwrap(), 0o755);
        assert_eq!(unpack(&layer)["workload"], PROGRAM);
    }

    /// youki starts no process without one.
    #[test]
    fn both_images_have_a_path() {
        for image in [image(), Image::of_suite(b"program")] {
            let config = parse(image.config.bytes());
            let variable = config["config"]["Env"][0].as_str().unwrap();
            assert!(variable.starts_with("PATH=/"), "{variable}");
        }
    }

    #[test]
    fn the_image_of_the_suite_runs_the_suite() {
        let suite = Image::of_suite(b"program");
        let files = unpack(suite.layer.bytes());
        let config = &parse(suite.config.bytes())["config"];
        let entry = config["Entrypoint"][0].as_str().unwrap();
        assert_eq!(files[entry.trim_start_matches('/')], b"program");
        let mut layer = tar::Archive::new(suite.layer.bytes());
        let links = layer.entries().unwrap().filter_map(|found| {
            let found = found.unwrap();
            let target = found.link_name().unwrap()?;
            assert_eq!(target.to_str(), Some(entry));
            Some(found.path().unwrap().display().to_string())
        });
        let expected = LINKS.map(|link| format!("bin/{link}"));
        assert_eq!(links.collect::<Vec<_>>(), expected);
        assert_eq!(
            config["Labels"]["org.opencontainers.image.title"],
            "cri-event-conformance"
        );
    }

    #[test]
    fn the_docker_archive_is_complete() {
        let tags = ["localhost/a:1".to_owned(), "localhost/b:2".to_owned()];
        let mut archive = Vec::new();
        image().write_docker_archive(&tags, &mut archive).unwrap();
        let files = unpack(&archive);
        let manifest = &parse(&files["manifest.json"])[0];
        assert_eq!(manifest["RepoTags"], json!(tags));
        let config = &files[manifest["Config"].as_str().unwrap()];
        assert_eq!(digest(config), image().id());
        let config = parse(config);
        assert_eq!(config["config"]["Labels"], json!({ "run": "7" }));
        let layer = &files[manifest["Layers"][0].as_str().unwrap()];
        assert_eq!(config["rootfs"]["diff_ids"], json!([digest(layer)]));
    }

    #[test]
    fn the_oci_archive_is_complete() {
        let tags = ["localhost:5000/a:1".to_owned(), "localhost/b:2".to_owned()];
        let mut archive = Vec::new();
        image().write_oci_archive(&tags, &mut archive).unwrap();
        let files = unpack(&archive);
        let blob = |descriptor: &Value| {
            let name = descriptor["digest"].as_str().unwrap();
            let bytes = &files[&format!("blobs/{}", name.replace(':', "/"))];
            assert_eq!(digest(bytes), name);
            assert_eq!(descriptor["size"], bytes.len());
            bytes
        };
        let index = parse(&files["index.json"]);
        let annotations = &index["manifests"][0]["annotations"];
        assert_eq!(annotations["io.containerd.image.name"], tags[0]);
        assert_eq!(annotations["org.opencontainers.image.ref.name"], "1");
        assert_eq!(
            index["manifests"][1]["annotations"]["io.containerd.image.name"],
            tags[1]
        );
        assert_eq!(index["manifests"][0]["digest"], image().manifest_digest());
        let manifest = parse(blob(&index["manifests"][0]));
        assert_eq!(manifest["config"]["digest"], image().id());
        let config = parse(blob(&manifest["config"]));
        let layer = blob(&manifest["layers"][0]);
        assert_eq!(config["rootfs"]["diff_ids"], json!([digest(layer)]));
    }

    #[test]
    fn an_archive_without_a_tag_has_one_nameless_image() {
        let entries = image().index_entries(&[]);
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].get("annotations"), None);
    }
}
