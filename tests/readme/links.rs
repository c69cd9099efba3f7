//! The pages are in one piece: links between them lead somewhere, the files that they name exist,
//! and the first page is short.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The longest README that somebody reads to its end.
const README_BYTES: usize = 10_000;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages in a folder and below it.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The text without its blocks of code.
fn prose(text: &str) -> String {
    let mut in_code = false;
    let lines = text.lines().filter(|line| {
        let fence = line.starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The targets of links, but for those to other sites.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://"))
        .map(str::to_owned)
        .collect()
}

/// The anchors of a page: its headings as GitHub writes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        });
        kept.collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut found = Vec::new();
    pages(root(), &mut found);
    assert!(found.len() > 5, "{found:?}");
    let mut broken = Vec::new();
    for page in found {
        let text = prose(&fs::read_to_string(&page).expect("it can be read"));
        for link in links(&text) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = page.parent().expect("it is in a folder");
            let target = match path {
                "" => page.clone(),
                path => folder.join(path),
            };
            let reached = match fs::read_to_string(&target) {
                Ok(text) => anchor.is_empty() || anchors(&prose(&text)).contains(anchor),
                Err(_) => target.exists() && anchor.is_empty(),
            };
            if !reached {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Paths of this project in the text: code of one word that begins with one of its folders.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    const FOLDERS: [&str; 8] = [
        "benches/",
        "cases/",
        "ci/",
        "fixtures/",
        "fuzz/",
        "proto/",
        "src/",
        "tests/",
    ];
    let code = text.split('`').skip(1).step_by(2);
    code.filter(|code| !code.contains(' ') && FOLDERS.iter().any(|at| code.starts_with(at)))
}

/// Of a path such as `cases/<area>/<claim>.yaml` the folder must exist that is named in full.
#[test]
fn files_that_pages_name_exist() {
    let mut found = Vec::new();
    pages(root(), &mut found);
    let mut missing = Vec::new();
    for page in found {
        let text = prose(&fs::read_to_string(&page).expect("it can be read"));
        for path in paths(&text) {
            let named = path.split(['<', '*']).next().unwrap_or_default();
            let exists = if named == path {
                root().join(path).exists()
            } else {
                let folder = named.rsplit_once('/').map_or("", |(folder, _)| folder);
                root().join(folder).is_dir()
            };
            if !exists {
                missing.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is one");
    assert!(readme.len() <= README_BYTES, "{} bytes", readme.len());
}
