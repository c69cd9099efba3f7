//! What checks may ask about the names that a case binds, and where they report what is wrong with
//! them.

use super::call_edge::CallEdge;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// A sandbox.
    Sandbox {
        /// The limit of memory of all that is in it, if it has one.
        memory_mib: Option<u32>,
    },
    /// A container.
    Container {
        /// The sandbox it lives in.
        sandbox: &'a str,
        /// Its limit of memory, if it has one.
        memory_mib: Option<u32>,
        /// Whether its workload says with which code it will exit.
        declares_exit: bool,
    },
    /// A subscription of the case.
    Subscription {
        /// Whether its connection is its own.
        own: bool,
    },
}

/// What may stand at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A sandbox.
    Sandbox,
    /// A container.
    Container,
    /// A sandbox or container.
    Either,
    /// A subscription of the case.
    Subscription,
    /// Any of them.
    Any,
}

impl Kind<'_> {
    /// The noun for it in a sentence.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::Sandbox { .. } => "sandbox",
            Self::Container { .. } => "container",
            Self::Subscription { .. } => "subscription",
        }
    }
}

impl Wanted {
    /// Whether such a name may stand here.
    #[must_use]
    pub fn admits(self, kind: Kind<'_>) -> bool {
        match kind {
            Kind::Sandbox { .. } => matches!(self, Self::Sandbox | Self::Either | Self::Any),
            Kind::Container { .. } => matches!(self, Self::Container | Self::Either | Self::Any),
            Kind::Subscription { .. } => matches!(self, Self::Subscription | Self::Any),
        }
    }

    /// The noun for it in a sentence.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Container => "container",
            Self::Either => "sandbox or container",
            Self::Any => "sandbox, container or subscription",
            Self::Subscription => "subscription",
        }
    }

    /// How to bind a name to it.
    #[must_use]
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
    /// The kind of what the name under `key` stands for. Reports a name that is not bound, or to
    /// something else than is wanted.
    fn resolve_unsure(&mut self, key: &'static str, name: &str, wanted: Wanted)
    -> Option<Kind<'a>>;
    /// Whether the call that was to make it may have failed.
    fn is_unsure(&self, name: &str) -> bool;
    /// Whether a step makes such a call on it.
    fn is_called(&self, name: &str, edge: CallEdge) -> bool;
    /// Whether a step lists the sandbox's containers.
    fn is_relisted(&self, sandbox: &str) -> bool;
    /// Goes down to the value of a key.
    fn enter(&mut self, key: &'static str);
    /// Goes back up.
    fn leave(&mut self);
    /// Reports what is wrong with the value of a key, or with the whole check.
    fn report(&mut self, key: Option<&'static str>, message: String);
    /// Adds a way out to the latest report.
    fn add_help(&mut self, help: String);
}

impl<'a> dyn Scope<'a> + '_ {
    /// As [`Scope::resolve_unsure`]; also reports what may not have been made.
    pub(super) fn resolve(
        &mut self,
        key: &'static str,
        name: &str,
        wanted: Wanted,
    ) -> Option<Kind<'a>> {
        if self.is_unsure(name) {
            self.object_to("of", format!("`{name}` may not have been made"))
                .advise("use `aftermath` for it");
        }
        self.resolve_unsure(key, name, wanted)
    }

    /// Objects to the whole check.
    pub(super) fn object(&mut self, message: impl Into<String>) -> &mut Self {
        self.report(None, message.into());
        self
    }

    /// Objects to the value of a key.
    pub(super) fn object_to(&mut self, key: &'static str, message: impl Into<String>) -> &mut Self {
        self.report(Some(key), message.into());
        self
    }

    /// Adds a way out to the latest objection.
    pub(super) fn advise(&mut self, help: impl Into<String>) {
        self.add_help(help.into());
    }
}

/// Objects to a container whose sandbox no step lists.
pub(super) fn needs_relist<'a>(scope: &mut (dyn Scope<'a> + '_), of: &str) {
    let Some(Kind::Container { sandbox, .. }) = scope.resolve("of", of, Wanted::Container) else {
        return;
    };
    if !scope.is_relisted(sandbox) {
        scope
            .object("there is no relist to compare the events with")
            .advise(format!("add a step `- relist: {{sandbox: {sandbox}}}`"));
    }
}
