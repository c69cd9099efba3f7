//! The names that a case binds, for look-up by checks, and the problems that checks report.

use super::call_edge::CallEdge;
use crate::history::Holder;

#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    Sandbox {
        /// The memory limit of the pod, if any.
        memory_mib: Option<u32>,
    },
    Container {
        sandbox: &'a str,
        memory_mib: Option<u32>,
        declares_exit: bool,
    },
    Subscription {
        /// Whether it has its own connection.
        own: bool,
    },
}

/// The kinds of names that a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Sandbox,
    Container,
    Either,
    Subscription,
    Any,
}

impl Kind<'_> {
    /// The noun in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Sandbox { .. } => "sandbox",
            Self::Container { .. } => "container",
            Self::Subscription { .. } => "subscription",
        }
    }
}

impl Wanted {
    /// Whether a name of this kind is accepted.
    pub fn admits(self, kind: Kind<'_>) -> bool {
        match kind {
            Kind::Sandbox { .. } => matches!(self, Self::Sandbox | Self::Either | Self::Any),
            Kind::Container { .. } => matches!(self, Self::Container | Self::Either | Self::Any),
            Kind::Subscription { .. } => matches!(self, Self::Subscription | Self::Any),
        }
    }

    /// The noun in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Container => "container",
            Self::Either => "sandbox or container",
            Self::Any => "sandbox, container or subscription",
            Self::Subscription => "subscription",
        }
    }

    /// How to bind such a name, for the help of a diagnostic.
    pub fn way_to_bind(self, name: &str) -> String {
        match self {
            Self::Sandbox => format!("run it in an earlier step: `- sandbox: {{as: {name}}}`"),
            Self::Container | Self::Either | Self::Any => {
                format!("create it in an earlier step: `- create: {{as: {name}, in: …}}`")
            }
            Self::Subscription => {
                format!("open it in an earlier step: `- subscribe: {{as: {name}}}`")
            }
        }
    }
}

/// The names that a case binds, and the problems found so far.
pub trait Scope<'a> {
    /// Returns the kind of the name under `key`. Reports an unbound name, or one of the wrong kind.
    fn resolve_unsure(&mut self, key: &'static str, name: &str, wanted: Wanted)
    -> Option<Kind<'a>>;
    fn is_unsure(&self, name: &str) -> bool;
    /// Whether a step makes such a call on the name.
    fn is_called(&self, name: &str, edge: CallEdge) -> bool;
    fn is_relisted(&self, sandbox: &str) -> bool;
    /// The number of steps that measure the resources of a holder.
    fn measurements(&self, holder: Holder) -> u64;
    /// Enters the value of a key, to which the following reports refer.
    fn enter(&mut self, key: &'static str);
    /// Undoes the latest [`Scope::enter`].
    fn leave(&mut self);
    /// Reports a problem of the value of a key, or of the whole check.
    fn report(&mut self, key: Option<&'static str>, message: String);
    /// Adds help to the latest report.
    fn add_help(&mut self, help: String);
}

impl<'a> dyn Scope<'a> + '_ {
    /// As [`Scope::resolve_unsure`]; also reports a name whose creation may fail.
    pub(super) fn resolve(
        &mut self,
        key: &'static str,
        name: &str,
        wanted: Wanted,
    ) -> Option<Kind<'a>> {
        if self.is_unsure(name) {
            self.error_at("of", format!("the creation of `{name}` may fail"))
                .help("use `aftermath` for it");
        }
        self.resolve_unsure(key, name, wanted)
    }

    /// Reports a problem of the whole check.
    pub(super) fn error(&mut self, message: impl Into<String>) -> &mut Self {
        self.report(None, message.into());
        self
    }

    /// Reports a problem of the value of a key.
    pub(super) fn error_at(&mut self, key: &'static str, message: impl Into<String>) -> &mut Self {
        self.report(Some(key), message.into());
        self
    }

    /// Adds help to the latest report.
    pub(super) fn help(&mut self, help: impl Into<String>) {
        self.add_help(help.into());
    }
}
