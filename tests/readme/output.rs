//! The output in pages is that of the suite: each block begins with its command, and has `...` in
//! place of omitted lines.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::golden::assert_file;

struct Block {
    page: &'static str,
    /// The arguments of the command, as in the page.
    arguments: &'static str,
    parts: &'static [Part],
}

/// Lines that a block shows: from the one that contains `from` to before the one that contains
/// `until`, or to the end.
struct Part {
    from: &'static str,
    until: &'static str,
}

/// In no output.
const TO_THE_END: &str = "nothing: to the end";

const BLOCKS: [Block; 3] = [
    Block {
        page: "README.md",
        arguments: "--runtime-endpoint model",
        parts: &[
            Part {
                from: "testing model",
                until: "image",
            },
            Part {
                from: "test ORD-01",
                until: "test ",
            },
            Part {
                from: "keeps",
                until: TO_THE_END,
            },
        ],
    },
    Block {
        page: "README.md",
        arguments: "check fixtures/histories/containerd-2.1/STP-06-deleted-before-stopped.binpb STP-06",
        parts: &[
            Part {
                from: "STP-06 MUST",
                until: "1 other cause",
            },
            Part {
                from: "exit code",
                until: TO_THE_END,
            },
        ],
    },
    Block {
        page: "src/explore/README.md",
        arguments: "-r model --defect deleted-before-stopped explore --seed 1 --fail-fast",
        parts: &[
            Part {
                from: "walk 0 of",
                until: "why:",
            },
            Part {
                from: "  steps:",
                until: "covered",
            },
        ],
    },
];

/// The output of the suite, run in the project's directory.
fn run(arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cri-event-conformance"))
        .args(arguments.split(' '))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the suite can be run");
    String::from_utf8([output.stderr, output.stdout].concat()).expect("it prints text")
}

fn excerpt(output: &str, parts: &[Part]) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let find = |text: &str, from: usize| {
        let found = lines[from..].iter().position(|line| line.contains(text));
        found.map(|at| from + at)
    };
    let mut shown = Vec::new();
    let mut at = 0;
    for part in parts {
        let start = find(part.from, at).unwrap_or_else(|| panic!("no `{}`: {output}", part.from));
        if start > at {
            shown.push("...");
        }
        at = find(part.until, start + 1).unwrap_or(lines.len());
        shown.extend(&lines[start..at]);
    }
    let shown = shown.join("\n").replace("\n\n...", "\n...");
    shown.trim_end().to_owned()
}

/// A text without the durations of cases. Simulated time depends on the load of the machine.
fn without_durations(text: &str) -> String {
    let line = |line: &str| match line.rsplit_once(" (") {
        Some((line, rest)) if rest.ends_with(" s)") => line.to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_output_in_pages_is_what_the_suite_prints() {
    for block in &BLOCKS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(block.page);
        let page = fs::read_to_string(&path).expect("there is one");
        let command = format!("cri-event-conformance {}\n", block.arguments);
        let (before, rest) = page.split_once(&command).expect(block.arguments);
        let (_, after) = rest.split_once("```").expect("the block has an end");
        let shown = excerpt(&run(block.arguments), block.parts);
        let made = format!("{before}{command}{shown}\n```{after}");
        if without_durations(&made) != without_durations(&page) {
            assert_file(path, &made);
        }
    }
}
