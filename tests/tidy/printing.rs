//! The place that prints.

use super::{finding, none, product};

/// All output is printed by one module, which makes it printable. libtest-mimic prints directly;
/// `src/run/console.rs` passes it only printable text.
#[test]
fn nothing_is_printed_past_the_terminal() {
    const PRINTS: [&str; 8] = [
        "stdout()",
        "stderr()",
        "io::stdout",
        "io::stderr",
        "print!",
        "println!",
        "dbg!",
        "/dev/tty",
    ];
    let mut findings = Vec::new();
    for source in product() {
        let code = source.product(&source.code);
        let named = PRINTS.iter().filter(|name| code.contains(**name));
        if source.path != "src/terminal.rs" {
            findings.extend(named.map(|name| finding(&source, name)));
        }
    }
    none("Only `src/terminal.rs` prints.", &findings);
}
