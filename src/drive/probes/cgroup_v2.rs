//! Whether all cgroups of the host are of version 2.

use super::Unavailable;
use crate::drive::session::Session;
use crate::history::Host;

pub(super) fn probe_cgroup_v2(session: &Session) -> Result<(), Unavailable> {
    let host = session.options().kernel.host();
    let lack = host.and_then(|host| lack_of(&host));
    lack.map_or(Ok(()), |lack| Err(lack.into()))
}

/// Why a host's containers have no cgroups of version 2, whose files alone have what is needed.
fn lack_of(host: &Host) -> Option<String> {
    let mounted = match host.cgroup.as_deref() {
        Some("2") => return None,
        Some("hybrid") => "it has both versions, of which containers then have version 1",
        Some(_) => "it has version 1",
        None => "it shows none",
    };
    Some(format!(
        "the host has to have cgroups of version 2 alone, and {mounted}; the kernel parameter \
         systemd.unified_cgroup_hierarchy=1, or cgroup_no_v1=all, boots it so"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cgroup: Option<&str>, lack: Option<&str>) {
        let host = Host {
            cgroup: cgroup.map(str::to_owned),
            ..Host::default()
        };
        let found = lack_of(&host);
        assert_eq!(found.is_some(), lack.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().contains(lack.unwrap_or_default()));
    }

    #[test]
    fn version_2_alone_will_do() {
        check(Some("2"), None);
        check(Some("1"), Some("it has version 1;"));
        check(Some("hybrid"), Some("both versions"));
        check(None, Some("none"));
    }
}
