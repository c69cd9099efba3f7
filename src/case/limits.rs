//! Limits that keep a mistyped case from overloading a run or a node.

use std::time::Duration;

/// A case file is a page of text. A larger file was named by mistake.
pub(super) const FILE_BYTES: u64 = 64 * 1024;

/// The catalogue has some 200 cases. A folder with more than this many is not one of cases.
pub(super) const FILES: usize = 1_000;

/// The maximum entries of a folder of cases and those below it, so that naming `/` ends soon.
pub(super) const ENTRIES: usize = 10_000;

/// Folders below folders. Cases lie in `<area>/`, so that one level would do.
pub(super) const FOLDER_DEPTH: usize = 8;

/// Steps that a file may write down; a case with more cannot be understood by reading it.
pub(super) const STEPS_WRITTEN: usize = 500;

/// Steps that a case may take, with all its rounds. At some 50 ms each this is under ten minutes.
pub(super) const STEPS_TAKEN: u64 = 10_000;

/// `repeat` within `repeat`. No case of the catalogue needs more than two.
pub(super) const NESTING: usize = 3;

/// Rounds of one `repeat`.
pub(super) const ROUNDS: u32 = 1_000;

/// Rounds under way at once. More load would test the node rather than the runtime.
pub(super) const WORKERS: u32 = 16;

/// The longest grace period; twice the default of a kubelet.
pub(super) const GRACE: Duration = Duration::from_secs(60);

/// The longest time that anything may take or be awaited.
pub(super) use crate::checks::duration::LONGEST_SPAN as SPAN;

/// The maximum change of the host's wall clock, small enough for the other services of the node.
pub(super) const CLOCK_STEP: Duration = Duration::from_secs(60);

/// Memory that a container may use or be limited to, so that no case exhausts the node.
pub(super) const MEMORY_MIB: u32 = 1_024;

/// The limit of Kubernetes for all annotations of an object.
pub(super) const ANNOTATION_KIB: u32 = 256;

/// Zombies that one container may hold, so that no case exhausts the node's process ids.
pub(super) const ZOMBIES: u32 = 2_000;

/// A name becomes part of a pod's or container's name.
pub(super) const NAME_CHARS: usize = 40;

/// Problems of one file that are reported. Each costs another parse to find its place.
pub(super) const PROBLEMS: usize = 100;
