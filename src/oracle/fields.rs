//! The fields of containers and sandboxes in the messages of the CRI: one row each, with the
//! messages that have it, the state from which it has its value, and the request that gives it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::history::{
    ContainerListing, ContainerMetadata, ContainerSpec, ContainerStatus, Mount, Namespaces,
    SandboxListing, SandboxMetadata, SandboxSpec, SandboxStatus, Text, User,
};

/// A message about one container or sandbox.
#[derive(Clone, Copy)]
pub(crate) enum Message<'a> {
    Status(&'a ContainerStatus),
    Item(&'a ContainerListing),
    Sandbox(&'a SandboxStatus),
    SandboxItem(&'a SandboxListing),
}

/// The request that made a container or a sandbox.
#[derive(Clone, Copy)]
pub(super) enum Made<'a> {
    Container(&'a ContainerSpec),
    Sandbox(&'a SandboxSpec),
}

/// The value of a field.
#[derive(PartialEq)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Number(i64),
    Map(Cow<'a, BTreeMap<Text, Text>>),
    /// Sorted: the CRI defines no order of mounts.
    Mounts(Vec<Mount>),
    Texts(&'a [String]),
    User(Option<&'a User>),
}

/// The state from which a field has its value, which then stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    Creation,
    Start,
    Exit,
    /// While a container runs, or a sandbox is ready; no state before or after demands it.
    Running,
}

/// A field of the CRI.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) since: Since,
    /// Whether it must be set from then on.
    pub(super) is_needed: bool,
    /// Whether lists have the same value as statuses.
    pub(super) is_alike: bool,
    /// Its value; `None` if the message does not have it, as lists do not have all of a status.
    pub(super) read: for<'a> fn(Message<'a>) -> Option<Value<'a>>,
    /// Its value in the request; `None` if that does not determine it.
    pub(super) made: for<'a> fn(Made<'a>) -> Option<Value<'a>>,
    /// Whether `UpdateContainerResources` sets entries of it.
    pub(super) is_updated: bool,
}

impl Field {
    /// Whether it must not be set before its state: what is not compared before may be.
    pub(super) fn is_unset_before(&self) -> bool {
        self.is_needed || self.name == "exit_code"
    }
}

const FIELD: Field = Field {
    name: "",
    since: Since::Creation,
    is_needed: false,
    is_alike: true,
    read: |_| None,
    made: |_| None,
    is_updated: false,
};

const NEEDED: Field = Field {
    is_needed: true,
    ..FIELD
};

/// Makes a function of some variants of a message or request; the others have no such field.
macro_rules! of {
    ($of:ident: $($variant:ident($it:ident) => $value:expr),+) => {
        |of| {
            $(if let $of::$variant($it) = of {
                return Option::from($value);
            })+
            None
        }
    };
}

pub(super) const FIELDS: &[Field] = &[
    Field {
        name: "name",
        read: |message| {
            let name = pod(message).map(|of| &of.name);
            let name = name.or_else(|| container(message).map(|of| &of.name));
            Some(text(name.map_or("", |name| name)))
        },
        made: of!(Made: Container(spec) => text(spec.name()), Sandbox(spec) => text(&spec.name)),
        ..NEEDED
    },
    Field {
        name: "attempt",
        read: |message| {
            let attempt = pod(message).map(|of| of.attempt);
            let attempt = attempt.or_else(|| container(message).map(|of| of.attempt));
            attempt.map(number)
        },
        made: of!(Made:
            Container(spec) => number(spec.attempt),
            Sandbox(spec) => number(spec.attempt)
        ),
        ..FIELD
    },
    Field {
        name: "namespace",
        read: |message| pod(message).map(|of| text(&of.namespace)),
        made: of!(Made: Sandbox(spec) => text(&spec.namespace)),
        ..FIELD
    },
    Field {
        name: "uid",
        read: |message| pod(message).map(|of| text(of.uid.as_str())),
        made: of!(Made: Sandbox(spec) => text(spec.uid.as_str())),
        ..NEEDED
    },
    Field {
        name: "pod_sandbox_id",
        read: of!(Message: Item(item) => text(item.sandbox.as_str())),
        made: of!(Made: Container(spec) => text(spec.sandbox.as_str())),
        ..NEEDED
    },
    Field {
        name: "created_at",
        read: of!(Message:
            Status(status) => number(status.created_at.0),
            Item(item) => number(item.created_at.0),
            Sandbox(status) => number(status.created_at.0),
            SandboxItem(item) => number(item.created_at.0)
        ),
        ..NEEDED
    },
    Field {
        name: "started_at",
        since: Since::Start,
        read: of!(Message: Status(status) => number(status.started_at.0)),
        ..NEEDED
    },
    Field {
        name: "finished_at",
        since: Since::Exit,
        read: of!(Message: Status(status) => number(status.finished_at.0)),
        ..NEEDED
    },
    Field {
        name: "exit_code",
        since: Since::Exit,
        read: of!(Message: Status(status) => number(status.exit_code)),
        ..FIELD
    },
    Field {
        name: "reason",
        since: Since::Exit,
        read: of!(Message: Status(status) => text(&status.reason)),
        ..FIELD
    },
    Field {
        name: "message",
        since: Since::Exit,
        read: of!(Message: Status(status) => text(&status.message)),
        ..FIELD
    },
    Field {
        name: "image",
        is_alike: false,
        read: of!(Message:
            Status(status) => text(status.image.as_deref().unwrap_or_default()),
            Item(item) => text(item.image.as_deref().unwrap_or_default())
        ),
        ..NEEDED
    },
    Field {
        name: "image_ref",
        // containerd's lists have the id of the image, and its statuses the digest.
        is_alike: false,
        read: of!(Message:
            Status(status) => text(&status.image_ref),
            Item(item) => text(&item.image_ref).if_set()
        ),
        ..NEEDED
    },
    Field {
        name: "image_id",
        read: of!(Message:
            Status(status) => text(&status.setup.image_id),
            Item(item) => text(&item.image_id).if_set()
        ),
        ..FIELD
    },
    Field {
        name: "labels",
        read: of!(Message:
            Status(status) => map(&status.labels),
            Item(item) => map(&item.labels),
            Sandbox(status) => map(&status.labels),
            SandboxItem(item) => map(&item.labels)
        ),
        made: of!(Made: Container(spec) => map(&spec.labels), Sandbox(spec) => map(&spec.labels)),
        ..FIELD
    },
    Field {
        name: "annotations",
        read: of!(Message:
            Status(status) => map(&status.annotations),
            Item(item) => map(&item.annotations),
            Sandbox(status) => map(&status.annotations),
            SandboxItem(item) => map(&item.annotations)
        ),
        made: of!(Made:
            // A runtime adds to those of a container that it restores.
            Container(spec) => spec.checkpoint().is_none().then(|| map(&spec.annotations)),
            Sandbox(spec) => map(&spec.annotations)
        ),
        ..FIELD
    },
    Field {
        name: "mounts",
        read: of!(Message: Status(status) => mounts(status.setup.mounts.clone())),
        made: of!(Made: Container(spec) => mounts(spec.mounts())),
        ..FIELD
    },
    Field {
        name: "log_path",
        read: of!(Message: Status(status) => text(&status.setup.log_path)),
        made: of!(Made: Container(spec) => Value::Text(spec.full_log_path().into())),
        ..FIELD
    },
    Field {
        name: "stop_signal",
        read: of!(Message:
            Status(status) => number(status.setup.stop_signal.0).if_set()
        ),
        ..FIELD
    },
    Field {
        name: "resources",
        since: Since::Running,
        read: of!(Message:
            Status(status) => status.setup.resources.as_ref().map_or(NO_ENTRIES, |set| map(set))
        ),
        made: of!(Made: Container(spec) => limits(spec)),
        is_updated: true,
        ..FIELD
    },
    Field {
        name: "user",
        since: Since::Running,
        read: of!(Message: Status(status) => Value::User(status.setup.user.as_ref())),
        ..FIELD
    },
    Field {
        name: "ip",
        since: Since::Running,
        read: of!(Message:
            Sandbox(status) => Value::Texts(&status.ips).if_set()
        ),
        ..FIELD
    },
    Field {
        name: "namespaces",
        read: of!(Message: Sandbox(status) => status.namespaces.as_ref().map(namespaces)),
        made: of!(Made: Sandbox(spec) => namespaces(&spec.namespaces())),
        ..FIELD
    },
    Field {
        name: "runtime_handler",
        read: of!(Message:
            // CRI-O's statuses have none.
            Sandbox(status) => text(&status.runtime_handler).if_set(),
            SandboxItem(item) => text(&item.runtime_handler).if_set()
        ),
        // A runtime may name the default handler or not.
        made: of!(Made: Sandbox(spec) => text(&spec.runtime_handler).if_set()),
        ..FIELD
    },
];

fn container(message: Message<'_>) -> Option<&ContainerMetadata> {
    match message {
        Message::Status(status) => status.metadata.as_ref(),
        Message::Item(item) => item.metadata.as_ref(),
        Message::Sandbox(_) | Message::SandboxItem(_) => None,
    }
}

fn pod(message: Message<'_>) -> Option<&SandboxMetadata> {
    match message {
        Message::Sandbox(status) => status.metadata.as_ref(),
        Message::SandboxItem(item) => item.metadata.as_ref(),
        Message::Status(_) | Message::Item(_) => None,
    }
}

fn text(value: &str) -> Value<'_> {
    Value::Text(value.into())
}

fn number<'a>(value: impl Into<i64>) -> Value<'a> {
    Value::Number(value.into())
}

pub(super) const NO_ENTRIES: Value<'_> = Value::Map(Cow::Owned(BTreeMap::new()));

fn map(value: &BTreeMap<Text, Text>) -> Value<'_> {
    Value::Map(Cow::Borrowed(value))
}

fn namespaces<'a>(of: &Namespaces) -> Value<'a> {
    let Namespaces { network, pid, ipc } = of;
    Value::Text(format!("network {network}, pid {pid}, ipc {ipc}").into())
}

fn mounts<'a>(mut mounts: Vec<Mount>) -> Value<'a> {
    mounts.sort_unstable();
    Value::Mounts(mounts)
}

/// The limits that a request sets, by the CRI's names.
fn limits(spec: &ContainerSpec) -> Option<Value<'_>> {
    let bytes = spec.memory_bytes?.to_string();
    let limit = (Text::from("memory_limit_in_bytes"), Text::from(bytes));
    Some(Value::Map(Cow::Owned(BTreeMap::from([limit]))))
}

impl Value<'_> {
    /// Replaces entries of a map, or removes them if the update may not be done yet.
    pub(super) fn updated(self, by: &BTreeMap<Text, Text>, is_done: bool) -> Self {
        let Self::Map(map) = self else { return self };
        let mut map = map.into_owned();
        map.retain(|name, _| !by.contains_key(name));
        map.extend(by.clone().into_iter().filter(|_| is_done));
        Self::Map(Cow::Owned(map))
    }

    fn if_set(self) -> Option<Self> {
        self.is_set().then_some(self)
    }

    pub(super) fn is_set(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Number(number) => *number != 0,
            Self::Map(map) => !map.is_empty(),
            Self::Mounts(mounts) => !mounts.is_empty(),
            Self::Texts(texts) => !texts.is_empty(),
            Self::User(user) => user.is_some(),
        }
    }

    /// Whether it has all that a request gave: a runtime may add entries to maps and mounts, but
    /// the CRI forbids that for annotations.
    pub(super) fn has(&self, given: &Self, field: &str) -> bool {
        match (self, given) {
            (Self::Map(own), Self::Map(given)) if field != "annotations" => {
                given.iter().all(|(key, value)| own.get(key) == Some(value))
            }
            (Self::Mounts(own), Self::Mounts(given)) => given.iter().all(|given| {
                let path = &given.container_path;
                let mut own = own.iter().filter(|own| own.container_path == *path);
                own.any(|own| (&own.host_path, own.readonly) == (&given.host_path, given.readonly))
            }),
            _ => self == given,
        }
    }
}

impl fmt::Display for Value<'_> {
    /// The value, truncated if it is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 80;
        let full = match self {
            Self::Text(text) => format!("`{text}`"),
            Self::Number(number) => number.to_string(),
            Self::Map(map) => format!("{map:?}"),
            Self::Mounts(mounts) => mounts.iter().map(mount).collect::<Vec<_>>().join("; "),
            Self::Texts(texts) => format!("`{}`", texts.join("`, `")),
            Self::User(None) => "none".to_owned(),
            Self::User(Some(user)) => format!("{}:{} {:?}", user.uid, user.gid, user.groups),
        };
        match full.char_indices().nth(SHOWN) {
            None => f.write_str(&full),
            Some((end, _)) => write!(f, "{}… ({} bytes)", &full[..end], full.len()),
        }
    }
}

fn mount(mount: &Mount) -> String {
    let flags = [
        (mount.readonly, " readonly"),
        (mount.recursive_readonly, " recursively"),
        (mount.selinux_relabel, " relabelled"),
    ];
    let flags = flags.iter().filter(|(has, _)| *has).map(|(_, word)| *word);
    let flags: String = flags.collect();
    let (host, container) = (&mount.host_path, &mount.container_path);
    format!(
        "{host} at {container}{flags} propagation {}",
        mount.propagation
    )
}
