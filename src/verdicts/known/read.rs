//! Reading the text of an expectation file.

use std::collections::{BTreeMap, BTreeSet};

use super::{Known, Signatures, When};
use crate::history::ExpectationFile;
use crate::outcome::Kind;
use crate::yaml;

/// The minimum length of a message that identifies a fault, in bytes.
const SHORTEST_MESSAGE: usize = 12;

impl Known {
    /// Reads the text of an expectation file.
    pub fn parse(file: &ExpectationFile) -> Result<Self, String> {
        let known: Self = yaml::read(&file.text).map_err(|fault| fault.to_string())?;
        match known.fault() {
            Some(fault) => Err(fault),
            None => Ok(Self {
                path: file.path.clone(),
                ..known
            }),
        }
    }

    /// The error for a `finding` of a kind that its case or invariant cannot have, if any; `kinds`
    /// has the kinds by id.
    pub fn impossible_finding(&self, kinds: &BTreeMap<&str, BTreeSet<Kind>>) -> Option<String> {
        self.known.iter().enumerate().find_map(|(place, entry)| {
            let possible = kinds.get(&*entry.case)?;
            let findings = entry.finding.iter().flat_map(Signatures::iter);
            let mut wanted = findings.map(|finding| finding.kind);
            let kind = wanted.find(|kind| !possible.contains(kind))?;
            let possible: Vec<String> = possible.iter().map(|kind| format!("`{kind}`")).collect();
            Some(format!(
                "entry {} of `known:`: {} cannot have the finding `{kind}`, so the entry would \
                 accept nothing; it can have {}",
                place + 1,
                entry.case,
                possible.join(", ")
            ))
        })
    }

    /// The first entry that is certainly a mistake, if any.
    fn fault(&self) -> Option<String> {
        let too_short = |message: &str| {
            let longest = message.split('…').map(str::len).max();
            longest.unwrap_or_default() < SHORTEST_MESSAGE
        };
        let mut messages = self.faults.iter().map(|fault| &fault.message);
        if let Some(message) = messages.find(|message| too_short(message)) {
            return Some(format!(
                "faults: `{message}` would excuse too much: a message has at least \
                 {SHORTEST_MESSAGE} bytes"
            ));
        }
        if let Some(entry) = self.known.iter().find(|entry| {
            let is_invariant = entry.case.starts_with("INV-");
            entry.cases.is_some() && !is_invariant
        }) {
            let case = &entry.case;
            return Some(format!(
                "the entry of `{case}` has `in`, which names the cases that break an invariant; \
                 {case} is a case itself"
            ));
        }
        let of_entries = self.known.iter().map(|entry| &entry.when);
        let of_faults = self.faults.iter().map(|fault| &fault.when);
        let mut conditions = of_entries.chain(of_faults).flatten();
        conditions
            .find_map(When::fault)
            .or_else(|| self.ambiguous())
    }

    /// Two entries that can both apply, if any.
    fn ambiguous(&self) -> Option<String> {
        let entries = self.known.iter().enumerate();
        entries.clone().find_map(|(place, entry)| {
            let mut earlier = entries.clone().take(place);
            let (first, _) = earlier.find(|(_, earlier)| earlier.meets(entry))?;
            Some(format!(
                "`{}` is listed twice, by the entries {} and {}, for the same failures: make them \
                 one, or give them `when`, `in` or `finding` that exclude each other",
                entry.case,
                first + 1,
                place + 1
            ))
        })
    }
}
