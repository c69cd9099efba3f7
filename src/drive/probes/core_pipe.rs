//! Whether the host's core dumps go to a program, which a dying process waits for.

use std::io;

use super::Unavailable;
use crate::drive::session::Session;

pub(super) fn probe_core_pipe(session: &Session) -> Result<(), Unavailable> {
    let lack = lack_of(session.options().kernel.core_pattern());
    lack.map_or(Ok(()), |lack| Err(lack.into()))
}

/// Why a process that dies of a fault is gone at once on a host of this `core_pattern`.
fn lack_of(pattern: io::Result<String>) -> Option<String> {
    let found = match pattern {
        Ok(pattern) if pattern.starts_with('|') => return None,
        Ok(pattern) => format!("is `{}`", pattern.trim_end()),
        Err(fault) => format!("cannot be read: {fault}"),
    };
    Some(format!(
        "the host's core dumps must go to a program, so that a dying process waits for it, and \
         /proc/sys/kernel/core_pattern {found}; a crash handler such as systemd-coredump sets it \
         to a pipe, as core(5) describes"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_dumps_go_to_a_program_or_to_a_file() {
        let lack = |pattern: &str| lack_of(Ok(pattern.to_owned()));
        assert_eq!(lack("|/usr/bin/handler %P\n"), None);
        let file = lack("core\n").expect("a file holds nobody up");
        assert!(file.contains("is `core`"), "{file}");
        assert!(lack("core.%e|x").is_some());
        let unread = lack_of(Err(io::ErrorKind::NotFound.into()));
        assert!(unread.is_some_and(|unread| unread.contains("cannot be read")));
    }
}
