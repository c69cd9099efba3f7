//! The transitions whose events a runtime may fail to send, and occurrences that it may mistake for
//! one.

/// A state transition within a call that requires an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// A container that failed to start has exited: STOPPED.
    FailedStart,
    /// A container is killed in order to be removed: STOPPED.
    ForcedRemoval,
    /// A container is killed when its sandbox is stopped: STOPPED.
    EndWithSandbox,
    /// A container is removed together with its sandbox: DELETED.
    RemovalWithSandbox,
    /// A container ends with the container whose PID namespace it shares: STOPPED.
    EndWithTarget,
    /// A container has exited and the OCI runtime crashes while deleting it: STOPPED.
    EndInCrash,
    /// A paused container exits: STOPPED.
    EndWhilePaused,
    /// A container is restored from a checkpoint: STARTED.
    Restore,
    /// A container that failed to be restored has exited: STOPPED.
    FailedRestore,
}

/// An occurrence that changes no container's state and must not cause the event named here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonTransition {
    /// A stopped container is stopped again: STOPPED.
    RepeatedStop,
    /// A container that never ran is removed: STOPPED, as with CRI-O.
    StopOfNeverRun,
    /// The start of a running or exited container is refused: STARTED.
    RefusedStart,
    /// A command executed in a container ends: STOPPED of the container.
    ExecEnd,
    /// A call that changes no state: STARTED of the container in question.
    NoEventCall,
    /// A call to the image service: CREATED of all containers.
    ImageCall,
    /// An unknown or removed id is stopped or removed: STOPPED or DELETED of this id.
    UnknownId,
    /// A container is run outside the CRI: all of its events.
    OutsideCri,
    /// Stopping a container fails and it keeps running: STOPPED.
    FailedKill,
    /// A container's process is frozen: STOPPED.
    Freeze,
    /// A checkpoint of a container is made: STOPPED of the container.
    Checkpoint,
}

/// The remains of a sandbox or a container that could not be created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leftover {
    #[default]
    None,
    /// A CREATED event, although the object does not exist.
    Announced,
    /// The object is listed, although no event announced it.
    Listed,
}
