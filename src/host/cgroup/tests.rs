//! Only empty cgroups that bear a run's name are removed. Folders play the part of cgroups.

use tempfile::TempDir;

use super::*;
use crate::host::{BootTicks, OwnId};

const ID: &str = "0d4e4a3df1f4c1b3ad9a7d1c54dbb8b0";
const NAME: &str = "cri-event-conformance-3f2a9b10-5c4d-4e6f-8a7b-9c0d1e2f3a4b.4711-123.2";

fn ours() -> PodCgroup {
    PodCgroup::parse(NAME).expect("a run gives such names")
}

/// Hierarchies of version 1, one of which limits memory.
fn two_hierarchies() -> (TempDir, Hierarchies) {
    let folder = tempfile::tempdir().expect("a folder");
    let roots: Vec<PathBuf> = ["memory", "pids"]
        .iter()
        .map(|name| folder.path().join(name))
        .collect();
    for root in &roots {
        fs::create_dir(root).expect("a new folder");
    }
    let memory = Hierarchy {
        root: roots[0].clone(),
        version: Version::One,
        controller: "memory",
    };
    let memory = Some(memory);
    let freezer = None;
    let hierarchies = Hierarchies {
        roots,
        memory,
        freezer,
    };
    (folder, hierarchies)
}

fn make(folder: &TempDir, path: &str) -> PathBuf {
    let path = folder.path().join(path);
    fs::create_dir_all(&path).expect("a new folder");
    path
}

#[test]
fn names_tell_the_run_and_only_ours_are_read() {
    let run = RunId::from("3f2a9b10-5c4d-4e6f-8a7b-9c0d1e2f3a4b".to_owned());
    let cgroup = PodCgroup::new(&run, 7, CgroupDriver::Cgroupfs);
    assert_eq!(PodCgroup::parse(&cgroup.to_string()), Some(cgroup.clone()));
    let slice = PodCgroup::new(&run, 7, CgroupDriver::Systemd);
    assert_eq!(PodCgroup::parse(&slice.to_string()), Some(slice.clone()));
    // A dash would make it a slice within others.
    let name = slice.parent();
    assert!(
        name.starts_with("cri_event_conformance_3f2a9b10_5c4d_4e6f_8a7b_9c0d1e2f3a4b.")
            && name.ends_with(".7.slice")
    );
    assert!(!name.contains('-') && !name.contains('/'), "{name}");
    assert_eq!(
        (cgroup.owner().run(), cgroup.path().chars().next()),
        ("3f2a9b10-5c4d-4e6f-8a7b-9c0d1e2f3a4b", Some('/'))
    );
    assert_eq!(
        (ours().owner().run(), ours().owner().process()),
        ("3f2a9b10-5c4d-4e6f-8a7b-9c0d1e2f3a4b", "4711-123")
    );
    for other in [
        "kubepods",
        "cri-event-conformance",
        "cri-event-conformance-3f2a9b10-5c4d-4e6f-8a7b-9c0d1e2f3a4b",
        "cri-event-conformance-3f2a9b10-5c4d-4e6f-8a7b-9c0d1e2f3a4b.4711-123",
        "cri-event-conformance-3f2a9b10-5c4d-4e6f-8a7b-9c0d1e2f3a4b.4711-123.2.slice",
        "cri-event-conformance-3f2a9b10-5c4d-4e6f-8a7b-9c0d1e2f3a4b.4711-123.x",
        "cri-event-conformance-3f2a9b10-5c4d-4e6f-8a7b-9c0d1e2f3a4b.4711-123.02",
        "cri-event-conformance-.4711-123.2",
        "cri-event-conformance-../x.4711-123.2",
        "a-cri-event-conformance-3f2a9b10-5c4d-4e6f-8a7b-9c0d1e2f3a4b.4711-123.2",
    ] {
        assert_eq!(PodCgroup::parse(other), None, "{other}");
    }
}

#[test]
fn only_an_empty_cgroup_is_removed_in_all_hierarchies() {
    let (folder, hierarchies) = two_hierarchies();
    let own = [
        make(&folder, &format!("memory/{NAME}/container/nested")),
        make(&folder, &format!("pids/{NAME}/container")),
    ];
    let others = [
        make(&folder, "memory/kubepods/pod"),
        make(&folder, &format!("pids/{NAME}0")),
    ];
    assert_eq!(hierarchies.list_own().len(), 2);
    hierarchies.remove(&ours()).expect("nothing is left in it");
    assert!(own.iter().all(|own| !own.exists()));
    assert!(others.iter().all(|other| other.exists()));
    hierarchies.remove(&ours()).expect("it is gone already");
}

#[test]
fn one_with_a_process_below_it_stays_as_it_is() {
    let (folder, hierarchies) = two_hierarchies();
    let empty = make(&folder, &format!("memory/{NAME}/ended"));
    let lives = make(&folder, &format!("pids/{NAME}/lives"));
    fs::write(lives.join("cgroup.procs"), "17\n").expect("a new file");
    let refused = hierarchies.remove(&ours());
    assert!(matches!(refused, Err(CgroupError::Busy)), "{refused:?}");
    assert!(empty.exists() && lives.exists());
}

#[test]
fn no_file_is_ever_removed_and_no_link_followed() {
    let (folder, hierarchies) = two_hierarchies();
    let other = make(&folder, "memory/kubepods/pod");
    let link = folder.path().join(format!("pids/{NAME}"));
    std::os::unix::fs::symlink(folder.path().join("memory/kubepods"), &link).expect("a new link");
    let own = make(&folder, &format!("memory/{NAME}"));
    let file = own.join("a-file");
    fs::write(&file, "").expect("a new file");
    assert!(hierarchies.remove(&ours()).is_err());
    assert!(file.exists() && other.exists() && link.exists());
}

#[test]
fn the_limit_is_on_memory_and_on_swap_with_it() {
    let (folder, hierarchies) = two_hierarchies();
    let own = make(&folder, "memory/made");
    for file in [
        "memory.use_hierarchy",
        "memory.limit_in_bytes",
        "memory.memsw.limit_in_bytes",
    ] {
        fs::write(own.join(file), "0").expect("a new file");
    }
    let limit = |version| {
        let memory = hierarchies.memory.clone().expect("there is one");
        Hierarchy { version, ..memory }.limit(&own, 4096)
    };
    limit(Version::One).expect("the kernel has made the files");
    let content = |file| fs::read_to_string(own.join(file)).expect("it is there");
    assert_eq!(content("memory.use_hierarchy"), "1");
    assert_eq!(content("memory.limit_in_bytes"), "4096");
    assert_eq!(content("memory.memsw.limit_in_bytes"), "4096");
    // What the kernel has not made is no file that a limit could be written to.
    assert!(limit(Version::Two).is_err());
    for file in ["memory.max", "memory.swap.max", "cgroup.subtree_control"] {
        fs::write(own.join(file), "").expect("a new file");
    }
    limit(Version::Two).expect("the kernel has made the files");
    assert_eq!(content("memory.max"), "4096");
    assert_eq!(content("memory.swap.max"), "0");
    assert_eq!(content("cgroup.subtree_control"), "+memory");
}

#[test]
fn one_that_cannot_be_limited_is_not_left_behind() {
    let (folder, hierarchies) = two_hierarchies();
    assert!(hierarchies.make(&ours(), 4096).is_err());
    assert!(!folder.path().join("memory").join(NAME).exists());
    // One that is there is not ours to limit.
    let there = make(&folder, &format!("memory/{NAME}"));
    assert!(hierarchies.make(&ours(), 4096).is_err());
    assert!(there.exists());
}

#[test]
fn hierarchies_are_those_that_are_mounted_whole() {
    let of = |mounts: &[&str]| Hierarchies::parse(&mounts.join("\n"));
    let with = |controller| {
        move |root: &str, version| {
            Some(Hierarchy {
                root: PathBuf::from(root),
                version,
                controller,
            })
        }
    };
    let (memory, freezes) = (with("memory"), with("freezer"));
    let one = "35 31 0:32 / /cg/memory rw shared:9 - cgroup cgroup rw,memory";
    let pids = "39 31 0:36 / /cg/pids rw - cgroup cgroup rw,pids";
    let two = "41 31 0:37 / /cg/unified rw - cgroup2 cgroup2 rw,nsdelegate";
    let part = "42 31 0:37 /docker/1 /cg/part rw - cgroup cgroup rw,memory";
    let other = "43 31 0:38 / /tmp rw - tmpfs tmpfs rw,mode=755";
    assert_eq!(of(&[two, one]).memory, memory("/cg/memory", Version::One));
    assert_eq!(of(&[one, two]).memory, memory("/cg/memory", Version::One));
    assert_eq!(
        of(&[two, other]).memory,
        memory("/cg/unified", Version::Two)
    );
    assert_eq!(of(&[pids, part, other]).memory, None);
    // Each controller is where it is.
    let found = of(&[two, one]).freezer;
    assert_eq!(found, freezes("/cg/unified", Version::Two));
    let own = "36 31 0:33 / /cg/freezer rw - cgroup cgroup rw,freezer";
    let found = of(&[one, own]).freezer;
    assert_eq!(found, freezes("/cg/freezer", Version::One));
    assert_eq!(of(&[one]).freezer, None);
    assert_eq!(of(&[one, pids, two, part, other]).roots.len(), 3);
}

#[test]
fn a_runtime_suits_whose_cgroups_are_plain_and_in_sight() {
    let (folder, hierarchies) = two_hierarchies();
    let seen = make(&folder, "memory/k8s.io/abc");
    fs::write(seen.join("cgroup.procs"), "16\n17\n").expect("a new file");
    let visible = |cgroups| hierarchies.check_visible(17, cgroups);
    assert!(visible("9:pids:/\n4:cpu,memory:/k8s.io/abc\n0::/\n").is_ok());
    assert!(
        hierarchies
            .check_visible(18, "4:memory:/k8s.io/abc\n")
            .is_err()
    );
    let scope = make(&folder, "memory/system.slice/cri-containerd-abc.scope");
    fs::write(scope.join("cgroup.procs"), "17\n").expect("a new file");
    assert!(visible("4:memory:/system.slice/cri-containerd-abc.scope\n").is_ok());
    for elsewhere in ["4:memory:/../k8s.io/abc\n", "4:memory:/other/abc\n"] {
        let found = visible(elsewhere);
        assert!(matches!(found, Err(CgroupError::Elsewhere(_))), "{found:?}");
    }
    assert!(matches!(
        visible("4:pids:/k8s.io/abc\n"),
        Err(CgroupError::NoHierarchy)
    ));
}

#[test]
fn a_pods_processes_lie_below_its_cgroup() {
    let (_folder, hierarchies) = two_hierarchies();
    let holds = |path: &str| hierarchies.contains(&ours(), &format!("4:memory:{path}\n"));
    assert!(holds(&format!("/{NAME}/abc")));
    assert!(!holds(&format!("/{NAME}0/abc")));
    assert!(!holds("/k8s.io/abc"));
}

#[test]
fn empty_cgroups_of_ended_containers_are_removed_and_no_others() {
    let (folder, hierarchies) = two_hierarchies();
    let empty = format!("memory/k8s.io/{ID}");
    make(&folder, &format!("{empty}/below"));
    let busy = make(&folder, &format!("pids/k8s.io/{ID}"));
    fs::write(busy.join("cgroup.procs"), "12\n").expect("a file");
    let other = make(&folder, &format!("memory/k8s.io/x.{ID}"));
    let above = make(&folder, ID);
    let scope = make(&folder, &format!("memory/a.slice/crio-{ID}.scope"));
    let own = OwnId {
        id: ID.to_owned(),
        since: BootTicks::now(),
    };
    let ids = [own].into_iter().collect();
    let owned = BTreeSet::from([ID.to_owned()]);
    assert!(hierarchies.ids().contains(ID));
    assert_eq!(hierarchies.count_by_ids(&owned), 3);
    assert!(!hierarchies.remove_by_ids(&ids), "one is in use");
    assert_eq!(hierarchies.count_by_ids(&owned), 1);
    assert!(!folder.path().join(empty).exists());
    assert!(!scope.exists());
    assert!(busy.exists() && other.exists() && above.exists());
    fs::remove_file(busy.join("cgroup.procs")).expect("it was made");
    assert!(hierarchies.remove_by_ids(&ids));
    assert!(!busy.exists() && other.exists() && above.exists());
}
