//! What the names of a case stand for, where they may be used, and which calls are made on them.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::Findings;
use crate::case::diagnose::did_you_mean;
use crate::checks::CallEdge;
pub(super) use crate::checks::{Kind, Wanted};
use crate::history::Holder;

#[derive(Default)]
pub(in crate::case) struct Names<'a> {
    bound: BTreeMap<&'a str, Binding<'a>>,
    calls: BTreeSet<(&'a str, CallEdge)>,
    relisted: BTreeSet<&'a str>,
    /// Whose resources steps count, and how often.
    measured: Vec<(Holder, u64)>,
    /// What a call was to make that may have failed.
    unsure: BTreeSet<&'a str>,
}

struct Binding<'a> {
    kind: Kind<'a>,
    /// The `repeat` steps around it, from the outermost.
    rounds: Vec<usize>,
}

impl<'a> Names<'a> {
    /// Lets a name stand for something from here on, within the `repeat` steps around.
    pub(super) fn bind(
        &mut self,
        name: &'a str,
        kind: Kind<'a>,
        rounds: &[usize],
        found: &mut Findings,
    ) {
        use super::header::is_kebab;
        use crate::case::limits;

        if !is_kebab(name) || name.len() > limits::NAME_CHARS {
            let most = limits::NAME_CHARS;
            found
                .object_to("as", format!("`{name}` is no name"))
                .advise(format!(
                    "a name has small letters, digits and hyphens, and at most {most} of them"
                ));
        }
        if self.bound.contains_key(name) {
            found
                .object_to("as", format!("the name `{name}` is taken already"))
                .advise("a name stands for one thing in the whole case");
            return;
        }
        let rounds = rounds.to_owned();
        self.bound.insert(name, Binding { kind, rounds });
    }

    /// Notes that the call may fail which makes what the name stands for.
    pub(super) fn may_be_unbound(&mut self, name: &'a str) {
        self.unsure.insert(name);
    }

    /// Whether it may be that a name stands for nothing.
    pub(super) fn is_unsure(&self, name: &str) -> bool {
        self.unsure.contains(name)
    }

    /// What the name under `key` stands for in a step within these `repeat` steps.
    pub(super) fn in_step(
        &self,
        (key, name): (&'static str, &str),
        wanted: Wanted,
        rounds: &[usize],
        found: &mut Findings,
    ) -> Option<Kind<'a>> {
        let binding = self.resolve((key, name), wanted, found)?;
        if self.is_unsure(name) {
            found
                .object_to(key, format!("`{name}` may not have been made"))
                .advise("use it in an `aftermath` alone");
            return None;
        }
        if rounds.starts_with(&binding.rounds) {
            return Some(binding.kind);
        }
        found
            .object_to(
                key,
                format!("`{name}` is made anew in each round of a `repeat`, and no step after it can mean one of them"),
            )
            .advise("move the step into the `repeat`");
        None
    }

    /// What the name under `key` stands for in an expectation.
    pub(super) fn in_expectation(
        &self,
        (key, name): (&'static str, &str),
        wanted: Wanted,
        found: &mut Findings,
    ) -> Option<Kind<'a>> {
        Some(self.resolve((key, name), wanted, found)?.kind)
    }

    /// Notes that a step makes a call on what the name stands for.
    pub(in crate::case) fn called(&mut self, name: &'a str, edges: &[CallEdge]) {
        self.calls.extend(edges.iter().map(|edge| (name, *edge)));
    }

    /// Whether a step makes such a call.
    pub(super) fn is_called(&self, name: &str, edge: CallEdge) -> bool {
        self.calls.contains(&(name, edge))
    }

    /// Notes that a step lists a sandbox's containers.
    pub(in crate::case) fn relisted(&mut self, sandbox: &'a str) {
        self.relisted.insert(sandbox);
    }

    /// Whether a step lists a sandbox's containers.
    pub(super) fn is_relisted(&self, sandbox: &str) -> bool {
        self.relisted.contains(sandbox)
    }

    /// Notes that a step counts resources.
    pub(in crate::case) fn measured(&mut self, holder: Holder, times: u64) {
        self.measured.push((holder, times));
    }

    /// How often steps count the resources of a holder.
    pub(super) fn measurements(&self, holder: Holder) -> u64 {
        let own = self.measured.iter().filter(|(it, _)| *it == holder);
        own.map(|(_, times)| times).sum()
    }

    fn resolve(
        &self,
        (key, name): (&'static str, &str),
        wanted: Wanted,
        found: &mut Findings,
    ) -> Option<&Binding<'a>> {
        let Some(binding) = self.bound.get(name) else {
            let known = self
                .bound
                .iter()
                .filter(|(_, known)| wanted.admits(known.kind));
            let help = did_you_mean(name, known.map(|(name, _)| *name))
                .unwrap_or_else(|| wanted.way_to_bind(name));
            found
                .object_to(
                    key,
                    format!("no {} is called `{name}` so far", wanted.noun()),
                )
                .advise(help);
            return None;
        };
        if wanted.admits(binding.kind) {
            return Some(binding);
        }
        let (is, needed) = (binding.kind.noun(), wanted.noun());
        found.object_to(
            key,
            format!("`{name}` is a {is}, where a {needed} is needed"),
        );
        None
    }
}
