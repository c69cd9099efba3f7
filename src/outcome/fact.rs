//! The values of a finding, each with its name and type.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::history::{EventKind, cut};

/// A type for the value of a fact.
trait FactValue: fmt::Debug {
    /// The value in a sentence.
    fn text(&self) -> String;

    fn to_json(&self) -> Value {
        Value::String(self.text())
    }

    /// Cuts long texts.
    fn cut(&mut self) {}
}

/// A type for the value of a fact that an expectation file can match.
trait StableValue: FactValue + Sized {
    fn from_json(value: &Value) -> Result<Self, String>;
}

/// Makes the enum of all facts. Those behind `measured` differ from run to run.
macro_rules! facts {
    (
        stable { $($(#[doc = $doc:literal])+ $name:literal $variant:ident($type:ty);)+ }
        measured { $($(#[doc = $m_doc:literal])+ $m_name:literal $m_variant:ident($m_type:ty);)+ }
    ) => {
        /// A value of a finding, expected or actual.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fact {
            $($(#[doc = $doc])+ $variant($type),)+
            $($(#[doc = $m_doc])+ $m_variant($m_type),)+
        }

        impl Fact {
            /// The names of the facts that an expectation file can match.
            pub const STABLE: &[&str] = &[$($name,)+];

            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                    $(Self::$m_variant(_) => $m_name,)+
                }
            }

            /// Whether another run can see the same value.
            pub fn is_stable(&self) -> bool {
                match self {
                    $(Self::$variant(_) => true,)+
                    $(Self::$m_variant(_) => false,)+
                }
            }

            fn value(&self) -> &dyn FactValue {
                match self {
                    $(Self::$variant(value) => value,)+
                    $(Self::$m_variant(value) => value,)+
                }
            }

            fn cut(mut self) -> Self {
                match &mut self {
                    $(Self::$variant(value) => value.cut(),)+
                    $(Self::$m_variant(value) => value.cut(),)+
                }
                self
            }

            pub(super) fn read(name: &str, value: &Value) -> Result<Self, String> {
                match name {
                    $($name => <$type>::from_json(value)
                        .map(Self::$variant)
                        .map_err(|fault| format!("`{name}`: {fault}")),)+
                    $($m_name => Err(format!(
                        "`{name}` is measured: it differs from run to run and cannot be matched"
                    )),)+
                    _ => Err(format!(
                        "there is no fact `{name}`: there are {}",
                        Self::STABLE.join(", ")
                    )),
                }
            }
        }
    };
}

facts! {
    stable {
        /// The event concerned.
        "event" Event(EventKind);
        /// Events, in order of arrival.
        "events" Events(Vec<EventKind>);
        /// The event before which another should come.
        "before" Before(EventKind);
        /// The event after which another came.
        "after" After(EventKind);
        /// The state of a container or sandbox.
        "state" State(String);
        /// The state seen before.
        "after-state" AfterState(String);
        /// The permitted states.
        "states" States(Vec<String>);
        /// The exit code of a container.
        "exit-code" ExitCode(i64);
        /// The reason of a container's status.
        "reason" Reason(String);
        /// The name of a field of a message.
        "field" Field(String);
        /// The field that another should not follow.
        "after-field" AfterField(String);
        /// The value of that field.
        "value" FieldValue(String);
        /// The view of a kubelet that relists.
        "by-relists" ByRelists(String);
        /// The view of a kubelet that follows events.
        "by-events" ByEvents(String);
        /// The end of a stream.
        "end" End(String);
        /// The message of a kubelet's panic.
        "panic" Panic(String);
        /// The name of a call.
        "method" Method(String);
        /// The state that a wait saw instead of the awaited one, and other texts.
        "text" Text(String);
        /// A number that the CRI does not define.
        "number" Number(i64);
        /// The retained resource.
        "resource" Resource(String);
    }
    measured {
        /// The proof.
        "cause" Cause(String);
        /// Another sandbox, container, pod or subscription concerned.
        "of" Of(String);
        /// The reason for an expectation.
        "because" Because(String);
        /// The subject of another finding.
        "subject" Subject(String);
        /// Addresses of a sandbox.
        "address" Address(String);
        /// The permitted reasons.
        "reasons" Reasons(String);
        /// The median of durations.
        "median" Median(Duration);
        /// The 99th percentile of durations.
        "p99" P99(Duration);
        /// The longest duration.
        "worst" Worst(Duration);
        /// An id.
        "id" Id(String);
        /// The UID of a pod.
        "uid" Uid(String);
        /// A number of things.
        "count" Count(i64);
        /// The maximum increase.
        "limit" Limit(i64);
        /// The total number.
        "among" Among(i64);
        /// The place in a list, from 0.
        "place" Place(i64);
        /// The earliest permitted time, in nanoseconds.
        "earliest" Earliest(i64);
        /// The latest permitted time, in nanoseconds.
        "latest" Latest(i64);
        /// A time in nanoseconds.
        "time" Time(i64);
        /// The apparent unit of a time that is not in nanoseconds.
        "hint" Hint(String);
        /// The difference of two times, in nanoseconds.
        "apart-ns" ApartNs(u64);
        /// The time from one to the other.
        "pause" Pause(Duration);
        /// The bound.
        "within" Within(Duration);
    }
}

impl Fact {
    /// The value in a sentence.
    pub fn text(&self) -> String {
        self.value().text()
    }

    /// The value in a file.
    pub(super) fn to_json(&self) -> Value {
        self.value().to_json()
    }

    /// The same fact with another text, if its value is a text.
    pub fn map_text(&self, change: impl Fn(&str) -> String) -> Self {
        match self.to_json() {
            Value::String(text) if self.is_stable() => {
                Self::read(self.name(), &Value::String(change(&text)))
                    .unwrap_or_else(|_| self.clone())
            }
            _ => self.clone(),
        }
    }
}

impl FactValue for EventKind {
    fn text(&self) -> String {
        self.to_string()
    }
}

impl StableValue for EventKind {
    fn from_json(value: &Value) -> Result<Self, String> {
        let known = [Self::Created, Self::Started, Self::Stopped, Self::Deleted];
        let named = value
            .as_str()
            .and_then(|text| known.into_iter().find(|kind| kind.to_string() == text));
        named.ok_or_else(|| {
            format!("{value} is no event: there are CREATED, STARTED, STOPPED and DELETED")
        })
    }
}

impl FactValue for Vec<EventKind> {
    fn text(&self) -> String {
        if self.is_empty() {
            return "no event".to_owned();
        }
        let kinds: Vec<String> = self.iter().map(ToString::to_string).collect();
        kinds.join(", ")
    }

    fn to_json(&self) -> Value {
        self.iter().map(FactValue::to_json).collect()
    }
}

impl StableValue for Vec<EventKind> {
    fn from_json(value: &Value) -> Result<Self, String> {
        let list = value.as_array().ok_or("it is no list of events")?;
        list.iter().map(EventKind::from_json).collect()
    }
}

impl FactValue for String {
    fn text(&self) -> String {
        self.clone()
    }

    fn cut(&mut self) {
        cut(self);
    }
}

impl StableValue for String {
    fn from_json(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or_else(|| format!("{value} is no text"));
        text.map(str::to_owned)
    }
}

impl FactValue for Vec<String> {
    fn text(&self) -> String {
        match &self[..] {
            [] => String::new(),
            [only] => only.clone(),
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
        }
    }

    fn to_json(&self) -> Value {
        self.iter().map(FactValue::to_json).collect()
    }

    fn cut(&mut self) {
        self.iter_mut().for_each(cut);
    }
}

impl StableValue for Vec<String> {
    fn from_json(value: &Value) -> Result<Self, String> {
        let list = value.as_array().ok_or("it is no list of texts")?;
        list.iter().map(String::from_json).collect()
    }
}

impl FactValue for i64 {
    fn text(&self) -> String {
        self.to_string()
    }

    fn to_json(&self) -> Value {
        Value::from(*self)
    }
}

impl FactValue for u64 {
    fn text(&self) -> String {
        self.to_string()
    }

    fn to_json(&self) -> Value {
        Value::from(*self)
    }
}

impl StableValue for i64 {
    fn from_json(value: &Value) -> Result<Self, String> {
        value
            .as_i64()
            .ok_or_else(|| format!("{value} is no number"))
    }
}

impl FactValue for Duration {
    fn text(&self) -> String {
        format!("{:?}", rounded(*self))
    }
}

/// A duration rounded up to three decimals of its unit, so that one above a bound stays above it.
pub fn rounded(duration: Duration) -> Duration {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let digit = match nanos {
        0..1_000_000 => 1,
        1_000_000..1_000_000_000 => 1_000,
        _ => 1_000_000,
    };
    Duration::from_nanos(nanos.div_ceil(digit).saturating_mul(digit))
}

/// Values by their names, in the given order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Facts(Vec<Fact>);

impl Facts {
    pub fn iter(&self) -> impl Iterator<Item = &Fact> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Fact> {
        self.iter().find(|fact| fact.name() == name)
    }

    pub fn to_map(&self) -> BTreeMap<String, Value> {
        let value = |fact: &Fact| (fact.name().to_owned(), fact.to_json());
        self.iter().map(value).collect()
    }

    /// The facts that are equal in every run.
    pub fn stable(&self) -> Self {
        self.iter()
            .filter(|fact| fact.is_stable())
            .cloned()
            .collect()
    }
}

impl FromIterator<Fact> for Facts {
    fn from_iter<I: IntoIterator<Item = Fact>>(facts: I) -> Self {
        Self(facts.into_iter().map(Fact::cut).collect())
    }
}

impl<const N: usize> From<[Fact; N]> for Facts {
    fn from(facts: [Fact; N]) -> Self {
        facts.into_iter().collect()
    }
}
