//! A plan as the text of a case: its steps, and the checks that follow from what is certain.

mod checks;
mod steps;

use std::fmt::Write as _;
use std::path::Path;

use super::capabilities::Capabilities;
use super::plan::Plan;
use super::world::{World, plan_of};
use crate::case::{Case, parse};
use crate::outcome::Kind;
use crate::report::cut;

/// What a case says of itself.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) number: u32,
    /// Its name in its folder.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) why: String,
    pub(super) source: String,
    /// Whether the runtime is asked nothing but what the steps ask.
    pub(super) silent: bool,
    /// How often the steps are repeated, if they are.
    pub(super) repeat: Option<u32>,
    /// The finding that the case is to show: it has only the checks that can find it, or one that
    /// is always there if an invariant does.
    pub(super) only: Option<Focus>,
}

/// A plan that is legal, and its case.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    pub(super) plan: Plan,
    pub(super) case: Case,
}

/// What a case is to show.
#[derive(Clone, Debug)]
pub(super) struct Focus {
    pub(super) kind: Kind,
    /// The name of what it is about.
    pub(super) name: String,
    /// Whether an invariant finds it.
    pub(super) by_invariant: bool,
}

/// How many characters of a text a case has: as many as help to understand it.
const LONGEST_TEXT: usize = 2_000;

/// The folder of the cases that this module makes.
pub(super) const FOLDER: &str = "explore";

/// Makes a case of what is legal in a plan.
pub(super) fn walk(plan: Plan, can: &Capabilities, header: &Header) -> Walk {
    let mut world = World::new(can.clone());
    let taken = world.take_all(plan);
    let plan = plan_of(&taken);
    let mut steps = header.render(steps::use_streams(&taken));
    let indent = if let Some(times) = header.repeat {
        let _ = write!(steps, "  - repeat:\n      times: {times}\n      steps:\n");
        8
    } else {
        2
    };
    steps::write(&mut steps, &taken, indent);
    let mut checks = checks::checks(&world, header.silent);
    let mut case = read(header, &steps, &checks);
    if let Some(shown) = &header.only {
        checks = shown.checks(&case, checks);
        case = read(header, &steps, &checks);
    }
    Walk { plan, case }
}

fn read(header: &Header, steps: &str, checks: &[String]) -> Case {
    let mut text = format!("{steps}expect:\n");
    for check in checks {
        let _ = writeln!(text, "  - {check}");
    }
    let path = format!("{FOLDER}/{}.yaml", header.name);
    match parse(Path::new(&path), &text) {
        Ok(case) => case,
        Err(problems) => panic!("a walk is a case: {problems:#?}\n{text}"),
    }
}

impl Focus {
    /// The checks of a case that can find it, of what it is about or of all.
    fn checks(&self, case: &Case, checks: Vec<String>) -> Vec<String> {
        let kinds = case
            .expect
            .iter()
            .map(|expectation| expectation.check.kinds());
        let all: Vec<_> = checks.iter().cloned().zip(kinds).collect();
        let about = format!("of: {}", self.name);
        let is_about = |text: &str| text.split(['{', ',', '}']).any(|key| key.trim() == about);
        let finds = |kinds: &[Kind]| !self.by_invariant && kinds.contains(&self.kind);
        let own = all
            .iter()
            .filter(|(text, kinds)| finds(kinds) && is_about(text));
        let own: Vec<String> = own.map(|(text, _)| text.clone()).collect();
        if !own.is_empty() {
            return own;
        }
        let any = all.iter().filter(|(_, kinds)| finds(kinds));
        let any: Vec<String> = any.map(|(text, _)| text.clone()).collect();
        if any.is_empty() {
            checks.into_iter().take(1).collect()
        } else {
            any
        }
    }
}

impl Header {
    fn render(&self, streams: bool) -> String {
        let Self {
            number,
            title,
            why,
            source,
            ..
        } = self;
        let needs = if streams { "needs: [broadcast]\n" } else { "" };
        let silent = if self.silent { "silent: true\n" } else { "" };
        format!(
            "id: EXP-{number:02}\n\
             title: {}\n\
             why: {}\n\
             sources: [{}]\n\
             levels: {{cache: must, hint: must, observer: must}}\n\
             {needs}\
             exclusive: true\n\
             {silent}\
             steps:\n",
            quoted(&sentence(title)),
            quoted(why),
            quoted(source)
        )
    }
}

/// A title as a case has it, which ends with a period even if it was cut.
fn sentence(title: &str) -> String {
    let title = cut(title, LONGEST_TEXT - 1);
    let is_whole = title.ends_with('.');
    title + if is_whole { "" } else { "." }
}

/// A text in double quotes, as YAML and JSON have them, with all unprintable characters escaped:
/// YAML has no room for some. The text of a runtime is cut.
fn quoted(text: &str) -> String {
    serde_json::Value::from(cut(text, LONGEST_TEXT)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::printable_lines;
    use crate::explore::coverage::Coverage;
    use crate::explore::generate::{Size, generate};

    /// A runtime's text may hold anything: what drives a terminal, commands of a workflow, and
    /// characters that YAML does not take; and it may have any length.
    #[test]
    fn any_text_of_a_runtime_makes_a_case_of_printable_lines() {
        let evil = "evil\u{1b}]0;x\u{7}\0\r\u{7f}\u{9b}31m\u{202e}\u{e0001}\u{fffe}\n::error::end";
        for text in [evil.to_owned(), "\u{202e}".repeat(1 << 20)] {
            let header = Header {
                number: 1,
                name: "found-1-undecided".to_owned(),
                title: format!("{text} is expected."),
                why: text.clone(),
                source: "explore --seed 1".to_owned(),
                silent: false,
                repeat: None,
                only: None,
            };
            let can = Capabilities::default();
            let size = Size { steps: 9, pods: 1 };
            let plan = generate((1, 0), size, &can, &Coverage::default());
            let made = walk(plan, &can, &header);
            let text = made.case.definition;
            assert!(text.len() < 64 << 10, "{}", text.len());
            assert_eq!(printable_lines(&text), text);
            assert!(text.lines().all(|line| !line.starts_with("::")), "{text}");
        }
    }
}
