//! How binding something is, and for whom.

use std::fmt;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How binding a requirement is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Recorded for information.
    May,
    /// Broken, it is reported as advice and fails nothing.
    Should,
    /// Broken, the case fails.
    #[default]
    Must,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::May => "may",
            Self::Should => "should",
            Self::Must => "must",
        })
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
    /// It believes what an event carries: kubelet 1.26 to 1.36.
    #[value(help = "Kubelet 1.26 to 1.36, which believes what an event carries")]
    Cache,
    /// It takes STOPPED as a hint to relist the pod: kubelet 1.37 and later.
    #[value(help = "Kubelet 1.37 and later, which relists a pod when STOPPED comes")]
    Hint,
    /// Others, several of which may listen at once.
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
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How binding something is in each profile; absent where it does not concern the consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "levels such as `{cache: must, hint: should}`"
)]
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
    /// How binding it is in a profile.
    pub fn of(&self, profile: Profile) -> Option<Level> {
        match profile {
            Profile::Cache => self.cache,
            Profile::Hint => self.hint,
            Profile::Observer => self.observer,
        }
    }

    /// How binding it is in that of these profiles which it binds most; none if it concerns none.
    pub fn highest_of(&self, profiles: &[Profile]) -> Option<Level> {
        profiles
            .iter()
            .filter_map(|profile| self.of(*profile))
            .max()
    }

    /// The same, but nowhere more binding than these are: in a profile that they do not concern,
    /// than they are where they bind most.
    pub fn capped_by(&self, cap: &Self) -> Self {
        self.combined(|profile, level| {
            let cap = cap.of(profile).or(cap.highest());
            level.map(|level| level.min(cap.unwrap_or(Level::May)))
        })
    }

    /// In each profile whichever of the two binds more.
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

    /// How binding it is for the consumer that it binds most; none if it concerns nobody.
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
