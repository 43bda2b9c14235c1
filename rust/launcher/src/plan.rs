//! What the service asks for: `src/sandbox/launcher.ts` writes it, and the starter (`rust/starter/src/process.rs`).
//! `src/contracts/launcher.ts` is made from it. With `Option::deserialize`, null has to be written: a plan that forgets
//! a member is refused.
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// Process id of whoever starts the program, which ends with it. Null: it goes on without.
    #[serde(deserialize_with = "Option::deserialize")]
    pub parent: Option<i32>,
    /// The program keeps so many descriptors, from 0 on. With namespaces, reports go to the next one.
    pub streams: u32,
    /// The current folder, as the program sees it.
    pub cwd: PathBuf,
    /// Null: that of the launcher.
    #[serde(deserialize_with = "Option::deserialize")]
    pub nice: Option<i32>,
    /// Null: those of the launcher.
    #[serde(deserialize_with = "Option::deserialize")]
    pub limits: Option<Limits>,
    /// Whom the program runs as; as root only. Null: the user of the launcher, with its rights if `access`, `own` and
    /// `process` are null, too.
    #[serde(deserialize_with = "Option::deserialize")]
    pub identity: Option<Identity>,
    /// The folder of a cgroup to join; null: that of the launcher.
    #[serde(deserialize_with = "Option::deserialize")]
    pub cgroup: Option<PathBuf>,
    /// It may not change mode, owner, times or attributes of files. Where it runs as the user of the service, without
    /// namespaces, nothing else keeps it from those of the service.
    pub keeps_attributes: bool,
    /// Null: what its user may reach.
    #[serde(deserialize_with = "Option::deserialize")]
    pub access: Option<Access>,
    /// Null: those of the machine.
    #[serde(deserialize_with = "Option::deserialize")]
    pub namespaces: Option<Namespaces>,
    /// It is a program of the product that answers strangers or backends. Null: another one.
    #[serde(deserialize_with = "Option::deserialize")]
    pub own: Option<Own>,
    /// It is a process of the product itself, which listens, and starts programs. Another one has none of this.
    #[serde(default)]
    pub process: Option<Process>,
}

/// A program of the product that keeps none of its rights: whatever its user, it has no capabilities, no terminal, and
/// starts no processes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Own {
    /// Which it makes, besides those that it was given.
    pub sockets: Sockets,
    /// The launcher connects to Unix sockets of these users for it, see `connector.rs`. Null: it connects by itself.
    #[serde(deserialize_with = "Option::deserialize")]
    pub connects_to: Option<Users>,
}

/// A process of the product, as the Procfile names them, that gives up what it does not need of the rights of root.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Those that it keeps, by their numbers in capabilities(7), below 32.
    pub capabilities: Vec<u32>,
    /// Files and folders that its user is to reach, whatever folders are above them; and files that it is to read,
    /// whosever they are. What is not there is left out. Only with an identity.
    pub needs: Vec<PathBuf>,
    /// The program that starts others for it, which keeps rights of root: its path, and its arguments. The descriptor
    /// after the others leads to it.
    #[serde(deserialize_with = "Option::deserialize")]
    pub starter: Option<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sockets {
    Unix,
    /// Those of networks, too.
    Internet,
}

impl Plan {
    /// Another program of the service itself keeps its user and its rights.
    pub fn gives_up_rights(&self) -> bool {
        self.identity.is_some() || self.access.is_some() || self.own.is_some() || self.process.is_some()
    }

    /// The capabilities that the program keeps.
    pub fn kept_capabilities(&self) -> &[u32] {
        self.process.as_ref().map_or(&[], |process| &process.capabilities)
    }

    pub fn connects_to(&self) -> Option<Users> {
        self.own.as_ref().and_then(|own| own.connects_to)
    }

    pub fn starter(&self) -> Option<&[String]> {
        self.process.as_ref().and_then(|process| process.starter.as_deref())
    }

    /// How many descriptors the program has, from 0 on: the last one may be that of a process of the launcher's.
    pub fn descriptors(&self) -> u32 {
        self.streams + u32::from(self.connects_to().is_some() || self.starter().is_some())
    }
}

/// Limits of each process. Null: that of the launcher.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    pub address_space_bytes: u64,
    pub file_bytes: u64,
    pub open_files: u64,
    #[serde(deserialize_with = "Option::deserialize")]
    pub cpu_seconds: Option<u64>,
    /// The limit for all processes of its user together.
    #[serde(deserialize_with = "Option::deserialize")]
    pub processes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    pub user: u32,
    pub group: u32,
    /// Besides that one.
    pub groups: Vec<u32>,
}

impl Identity {
    pub fn has_group(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }
}

/// Users with successive ids.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    first: u32,
    count: u32,
}

impl Users {
    pub fn have(&self, user: u32) -> bool {
        user.checked_sub(self.first).is_some_and(|at| at < self.count)
    }
}

/// A file or folder of the machine, and where the program sees it if it has namespaces.
#[derive(Deserialize)]
pub struct Mount(pub PathBuf, pub PathBuf);

/// What a program may reach.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Access {
    pub read_only: Vec<Mount>,
    pub writable: Vec<Mount>,
    pub network: bool,
    /// Paths below system folders that it must not see, without symbolic links.
    pub hidden: Vec<PathBuf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Namespaces {
    /// Size of its own /tmp.
    pub tmp_bytes: u64,
    /// Its /proc has the file with which compilers find out how the kernel gives out memory.
    pub shows_overcommit: bool,
    pub shared_network: SharedNetwork,
}

/// The network namespace of a program without a network.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SharedNetwork {
    /// It has one of its own.
    None,
    /// It has one of its own that others will enter. This user is root in its user namespace, if it has one: so the
    /// tables of the network belong to it, and it can close them.
    First,
    /// It may enter the one that is open as the descriptor after that of reports; the next one is its user namespace,
    /// if it has one.
    Next,
}
