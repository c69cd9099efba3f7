//! The workloads of containers: their keys, and the rules for them.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::steps::keys;
use super::validate::Walk;
use super::{Need, Span, limits};
use crate::checks::duration::{Words, pattern};
use crate::history::Signal;

keys! {
    /// Exit by itself.
    ExitSpec: "an exit such as `{code: 42, after: 300ms}`" {
        /// The exit code.
        code: Number,
        /// The time after the start.
        #[serde(default)]
        after: Delay,
    }

    /// Exit by itself at a time counted from the case's first step, however late it was started:
    /// containers with the same time exit together.
    ExitAtSpec: "an exit such as `{code: 0, time: 8s}`" {
        /// The exit code.
        code: Number,
        /// The time after the case's first step.
        time: Duration,
    }

    /// Die by a signal, as the init of a container by that of a fault: the init of a container does
    /// not die of other signals that it sends to itself.
    DieSpec: "a death such as `{signal: 11, after: 300ms}`" {
        /// The signal: 4, 5, 7 or 11, for which every architecture has a fault; for a command in a
        /// container, any.
        signal: Number,
        /// The time after the start.
        #[serde(default)]
        after: Delay,
    }

    /// Run until a signal arrives, then exit with a code; SIGTERM and SIGINT end it with 143 and
    /// 130.
    UntilSignalSpec: "a signal and a code such as `{signal: SIGUSR1, code: 42}`" {
        /// The signal.
        signal: StopSignal,
        /// The exit code.
        code: Number,
    }

    /// Allocate more memory than the limit allows.
    AllocateSpec: "an amount of memory such as `{mib: 64, after: 500ms}`" {
        /// The amount of memory in MiB.
        mib: u32,
        /// The time after the start. A runtime watches for OOM kills only a little after it has
        /// started the container, so that an instant one tests something else.
        after: Duration,
    }

    /// Allocate more memory than the limit allows when SIGTERM arrives.
    AllocateOnTermSpec: "an amount of memory such as `{mib: 64}`" {
        /// The amount of memory in MiB.
        mib: u32,
    }

    /// Have a child process allocate more memory than the limit allows, and outlive it.
    AllocateInChildSpec:
        "an amount of memory such as `{mib: 64, after: 500ms, then: 1s, code: 0}`" {
        /// The amount of memory in MiB.
        mib: u32,
        /// The time after the start.
        after: Duration,
        /// The time that the container runs after the child's death.
        then: Duration,
        /// The exit code.
        code: Number,
    }
}

/// The workload of a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a workload such as `until-term`, `{exit: …}` or `{allocate: …}`"
)]
pub enum WorkloadSpec {
    /// Exit by itself.
    Exit(ExitSpec),
    /// Exit by itself at a time counted from the case's first step.
    ExitAt(ExitAtSpec),
    /// Exit by itself, and leave an orphan behind that never exits.
    OrphanChild(ExitSpec),
    /// Die by the signal of a CPU fault.
    Die(DieSpec),
    /// Die by the signal of a CPU fault, and dump a core of 1 MiB.
    DumpCore(DieSpec),
    /// Run until SIGTERM, then exit 0 at once.
    UntilTerm,
    /// Ignore SIGTERM and run until SIGKILL.
    IgnoreTerm,
    /// Run until a signal arrives, then exit.
    UntilSignal(UntilSignalSpec),
    /// Allocate more memory than the limit allows.
    Allocate(AllocateSpec),
    /// Allocate more memory than the limit allows when SIGTERM arrives.
    AllocateOnTerm(AllocateOnTermSpec),
    /// Have a child process allocate more memory than the limit allows, and outlive it.
    AllocateInChild(AllocateInChildSpec),
    /// A program that the image does not have.
    MissingProgram,
    /// A file that is not executable.
    NotExecutable,
    /// Leave this number of zombies to the container's init, then do as `until-term`.
    Zombies(u32),
}

impl WorkloadSpec {
    /// The needs beyond the socket.
    pub(super) fn needs(&self) -> Vec<Need> {
        match self {
            Self::DumpCore(_) => vec![Need::CorePipe],
            _ => Vec::new(),
        }
    }

    /// Whether it declares the exit code with which it ends by itself.
    pub(super) fn declares_exit(&self) -> bool {
        matches!(
            self,
            Self::Exit(_)
                | Self::ExitAt(_)
                | Self::OrphanChild(_)
                | Self::Die(_)
                | Self::DumpCore(_)
                | Self::AllocateInChild(_)
        )
    }

    /// Checks the workload of a container with this memory limit in MiB, if it has one.
    pub(super) fn check(&self, limit: Option<u32>, walk: &mut Walk<'_, '_>) {
        match self {
            Self::Exit(it) => walk.inside("exit", |walk| it.check(walk)),
            Self::OrphanChild(it) => walk.inside("orphan-child", |walk| it.check(walk)),
            Self::ExitAt(it) => walk.inside("exit-at", |walk| {
                walk.number("code", it.code);
                walk.span("time", Some(it.time));
            }),
            Self::Die(it) => walk.inside("die", |walk| it.check(walk)),
            Self::DumpCore(it) => walk.inside("dump-core", |walk| it.check(walk)),
            Self::UntilSignal(it) => {
                walk.inside("until-signal", |walk| walk.number("code", it.code));
            }
            Self::Allocate(it) => walk.inside("allocate", |walk| {
                check_amount(it.mib, limit, walk);
                walk.span("after", Some(it.after));
            }),
            Self::AllocateOnTerm(it) => {
                walk.inside("allocate-on-term", |walk| check_amount(it.mib, limit, walk));
            }
            Self::AllocateInChild(it) => walk.inside("allocate-in-child", |walk| {
                check_amount(it.mib, limit, walk);
                walk.number("code", it.code);
                walk.span("after", Some(it.after));
                walk.span("then", Some(it.then));
            }),
            Self::Zombies(count) => {
                let most = limits::ZOMBIES;
                if !(1..=most).contains(count) {
                    walk.error_at("zombies", format!("there are from 1 to {most} zombies"));
                }
            }
            Self::UntilTerm | Self::IgnoreTerm | Self::MissingProgram | Self::NotExecutable => {}
        }
    }

    /// Checks the workload of a command, which is not the init of its container: it can die of any
    /// signal.
    pub(super) fn check_command(&self, limit: Option<u32>, walk: &mut Walk<'_, '_>) {
        match self {
            Self::Die(it) => walk.inside("die", |walk| walk.delay("after", it.after)),
            workload => workload.check(limit, walk),
        }
    }
}

impl ExitSpec {
    fn check(&self, walk: &mut Walk<'_, '_>) {
        walk.number("code", self.code);
        walk.delay("after", self.after);
    }
}

impl DieSpec {
    fn check(&self, walk: &mut Walk<'_, '_>) {
        /// SIGILL, SIGTRAP, SIGBUS and SIGSEGV.
        const FAULTS: [u8; 4] = [4, 5, 7, 11];
        walk.number("signal", self.signal);
        if let Number::Given(signal) = self.signal
            && !FAULTS.contains(&signal)
        {
            walk.error_at("signal", "the init of a container cannot die of it alone")
                .help("the signals of faults are 4, 5, 7 and 11");
        }
        walk.delay("after", self.after);
    }
}

fn check_amount(mib: u32, limit: Option<u32>, walk: &mut Walk<'_, '_>) {
    let most = limits::MEMORY_MIB;
    if mib > most {
        let message = format!("no container may use more than {most} MiB");
        walk.error_at("mib", message);
    }
    if limit.is_none_or(|limit| limit >= mib) {
        walk.error_at("mib", "nothing limits the memory to less than this")
            .help("add a lower `memory-mib` to the container, or to its sandbox");
    }
}

/// A signal by which a container can be stopped instead of SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "a signal such as `SIGUSR1`")]
pub enum StopSignal {
    /// `SIGHUP`.
    #[serde(rename = "SIGHUP")]
    Hangup,
    /// `SIGQUIT`.
    #[serde(rename = "SIGQUIT")]
    Quit,
    /// `SIGUSR1`.
    #[serde(rename = "SIGUSR1")]
    User1,
    /// `SIGUSR2`.
    #[serde(rename = "SIGUSR2")]
    User2,
}

impl From<StopSignal> for Signal {
    fn from(signal: StopSignal) -> Self {
        match signal {
            StopSignal::Hangup => Self::HANGUP,
            StopSignal::Quit => Self::QUIT,
            StopSignal::User1 => Self::USER_1,
            StopSignal::User2 => Self::USER_2,
        }
    }
}

/// A number, or the current item of the `repeat` around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Given(u8),
    /// The item whose turn it is.
    Item,
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Given(number) => to.serialize_u8(*number),
            Self::Item => to.serialize_str("item"),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NumberVisitor)
    }
}

impl JsonSchema for Number {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number, or `item`: the current item of the `repeat` around it.",
            "oneOf": [
                {"type": "integer", "minimum": 0, "maximum": 255},
                {"const": "item"},
            ],
        })
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 0 to 255, or `item`")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        u8::try_from(number)
            .map(Number::Given)
            .map_err(|_| E::custom(format!("{number} is not from 0 to 255")))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Number, E> {
        if word == "item" {
            Ok(Number::Item)
        } else {
            Err(E::invalid_value(Unexpected::Str(word), &self))
        }
    }
}

/// A span of time, or as many milliseconds as the current item of the `repeat` around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    Given(Duration),
    /// The item whose turn it is, in milliseconds.
    Item,
}

impl Default for Delay {
    fn default() -> Self {
        Self::Given(Duration::ZERO)
    }
}

impl JsonSchema for Delay {
    fn schema_name() -> Cow<'static, str> {
        "Delay".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A duration such as `300ms`; or `item`, as many milliseconds as the \
                            current item of the `repeat` around it.",
            "pattern": format!("^item$|{}", pattern()),
        })
    }
}

impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Given(duration) => Span::serialize(duration, to),
            Self::Item => to.serialize_str("item"),
        }
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(DelayWords)
    }
}

struct DelayWords;

impl Visitor<'_> for DelayWords {
    type Value = Delay;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as `300ms`, or `item`")
    }

    fn visit_str<E: Error>(self, words: &str) -> Result<Delay, E> {
        if words == "item" {
            Ok(Delay::Item)
        } else {
            Words.visit_str(words).map(Delay::Given)
        }
    }
}
