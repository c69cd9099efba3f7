//! Requirement levels, and the profiles they apply to.

use std::fmt;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A requirement level.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Recorded for information.
    May,
    /// A violation is reported as advice and fails nothing.
    Should,
    /// A violation fails the case.
    #[default]
    Must,
}

impl Level {
    /// The word in upper case, as in a specification.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::May => "MAY",
            Self::Should => "SHOULD",
            Self::Must => "MUST",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A kind of consumer of events, for which a runtime is judged.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// A consumer that trusts the content of events: kubelet 1.26 to 1.36.
    #[value(help = "Kubelet 1.26 to 1.36, which trusts the content of events")]
    Cache,
    /// A consumer that treats STOPPED as a hint to relist the pod: kubelet 1.37 and later.
    #[value(help = "Kubelet 1.37 and later, which relists a pod when STOPPED comes")]
    Hint,
    /// Other consumers, several of which may listen at once.
    Observer,
}

impl Profile {
    pub const ALL: [Self; 3] = [Self::Cache, Self::Hint, Self::Observer];

    pub fn name(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Hint => "hint",
            Self::Observer => "observer",
        }
    }

    /// The consumer, as the help of `--profile` names it.
    pub fn meaning(self) -> String {
        let value = self.to_possible_value();
        let help = value.and_then(|value| value.get_help().map(ToString::to_string));
        help.unwrap_or_default()
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The requirement level in each profile; absent if it does not concern the consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[serde(expecting = "levels such as `{cache: must, hint: should}`")]
pub struct Levels {
    /// In the profile `cache`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Level>,
    /// In the profile `hint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Level>,
    /// In the profile `observer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observer: Option<Level>,
}

impl Levels {
    pub fn of(&self, profile: Profile) -> Option<Level> {
        match profile {
            Profile::Cache => self.cache,
            Profile::Hint => self.hint,
            Profile::Observer => self.observer,
        }
    }

    /// The highest level in these profiles; `None` if it concerns none of them.
    pub fn highest_of(&self, profiles: &[Profile]) -> Option<Level> {
        profiles
            .iter()
            .filter_map(|profile| self.of(*profile))
            .max()
    }

    /// The same, capped by the levels of `cap`: in a profile that `cap` does not concern, by its
    /// highest level.
    pub fn capped_by(&self, cap: &Self) -> Self {
        self.combined(|profile, level| {
            let cap = cap.of(profile).or(cap.highest());
            level.map(|level| level.min(cap.unwrap_or(Level::May)))
        })
    }

    /// The higher level of the two in each profile.
    pub fn or_higher(&self, other: &Self) -> Self {
        self.combined(|profile, level| level.max(other.of(profile)))
    }

    fn combined(self, combine: impl Fn(Profile, Option<Level>) -> Option<Level>) -> Self {
        let combine = |profile| combine(profile, self.of(profile));
        Self {
            cache: combine(Profile::Cache),
            hint: combine(Profile::Hint),
            observer: combine(Profile::Observer),
        }
    }

    /// The highest level in any profile; `None` if it concerns none.
    pub fn highest(&self) -> Option<Level> {
        self.highest_of(&Profile::ALL)
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let concerned = |profile: &Profile| Some((*profile, self.of(*profile)?));
        let levels = Profile::ALL.iter().filter_map(concerned);
        let levels: Vec<String> = levels
            .map(|(name, level)| format!("{name} {level}"))
            .collect();
        f.write_str(&levels.join(", "))
    }
}
