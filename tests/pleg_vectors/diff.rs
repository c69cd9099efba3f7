//! Two values side by side, line by line.

use std::fmt::{Debug, Write};

/// Does nothing if both are equal; otherwise prints the differences, `-` expected and `+` got.
pub(crate) fn compare<T: PartialEq + Debug>(
    step: &str,
    expected: &T,
    got: &T,
) -> Result<(), String> {
    if expected == got {
        return Ok(());
    }
    let (expected, got) = (format!("{expected:#?}"), format!("{got:#?}"));
    let diff = lines(
        &expected.lines().collect::<Vec<_>>(),
        &got.lines().collect::<Vec<_>>(),
    );
    Err(format!("{step} differs (- expected, + got)\n{diff}"))
}

/// The longest common subsequence keeps its lines; the others get their signs.
fn lines(expected: &[&str], got: &[&str]) -> String {
    let mut common = vec![vec![0_usize; got.len() + 1]; expected.len() + 1];
    for i in (0..expected.len()).rev() {
        for j in (0..got.len()).rev() {
            common[i][j] = if expected[i] == got[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut all) = (0, 0, Vec::new());
    while i < expected.len() || j < got.len() {
        let (sign, line) = if i < expected.len() && j < got.len() && expected[i] == got[j] {
            (i, j) = (i + 1, j + 1);
            (' ', got[j - 1])
        } else if j == got.len() || (i < expected.len() && common[i + 1][j] >= common[i][j + 1]) {
            i += 1;
            ('-', expected[i - 1])
        } else {
            j += 1;
            ('+', got[j - 1])
        };
        all.push((sign, line));
    }
    shorten(&all)
}

/// Leaves out the lines that are far from every difference.
fn shorten(all: &[(char, &str)]) -> String {
    const AROUND: usize = 4;
    let near = |place: usize| {
        let around = place.saturating_sub(AROUND)..all.len().min(place + AROUND + 1);
        all[around].iter().any(|(sign, _)| *sign != ' ')
    };
    let mut text = String::new();
    for (place, (sign, line)) in all.iter().enumerate() {
        if near(place) {
            writeln!(text, "{sign} {line}").expect("a string grows as needed");
        } else if place == 0 || near(place - 1) {
            text.push_str("  ...\n");
        }
    }
    text
}
