//! What a program may reach of the machine, enforced by Landlock: files, TCP, abstract sockets, signals, as far as the
//! kernel knows of them. <https://docs.kernel.org/userspace-api/landlock.html>
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};

use crate::failure::{self, Context, Result};
use crate::mounts::{DEVICES, LOADER_CACHE, OVERCOMMIT, SYSTEM_FOLDERS};
use crate::plan::{Access, Mount};

/// The newest that this code was written for. Older kernels enforce what they can.
const KNOWN: ABI = ABI::V9;

/// Renaming between folders, which builds do, is refused before this version.
const MINIMUM_ABI: i64 = 2;
/// Abstract sockets, and signals to other processes, are refused from this version on.
pub const ABI_WITH_SCOPES: i64 = 6;
/// What a program may read in /proc/self; not `net`, which is that of the machine.
const OF_ITSELF: [&str; 11] =
    ["auxv", "cgroup", "cmdline", "comm", "environ", "fd", "limits", "maps", "stat", "statm", "status"];

/// How the kernel gives out memory: allocators, such as that of rustc, do it in smaller pieces when they cannot know.
const OF_MEMORY: [&str; 2] = [OVERCOMMIT, "/sys/kernel/mm/transparent_hugepage/enabled"];

/// The version of Landlock in the kernel; 0 when there is none.
pub fn landlock_abi() -> i64 {
    const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;
    let nothing = std::ptr::null::<u8>();
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, LANDLOCK_CREATE_RULESET_VERSION) };
    version.max(0)
}

/// Made with the rights of the launcher, enforced when the process has lost them. None: namespaces have to do.
pub struct Restriction(Option<RulesetCreated>);

impl Restriction {
    /// Restricts this process and all that it starts, from now on.
    ///
    /// # Errors
    /// The kernel has no Landlock.
    pub fn enforce(self) -> Result<()> {
        let Some(ruleset) = self.0 else { return Ok(()) };
        let status = ruleset.restrict_self().context("landlock")?;
        if status.ruleset == RulesetStatus::NotEnforced {
            return Err(failure::of("the kernel has no Landlock, or it is not enabled at boot"));
        }
        Ok(())
    }
}

/// A program that sees the files of the machine: it may use system programs and libraries, and what it was given.
///
/// # Errors
/// A path cannot be opened.
pub fn allow_on_machine(access: &Access) -> Result<Restriction> {
    if landlock_abi() < MINIMUM_ABI {
        return Err(failure::of("the kernel has no Landlock as of Linux 5.19, or it is not enabled at boot"));
    }
    let Access { read_only, writable, network, hidden } = access;
    // Not /dev/zero: it can be mapped as shared memory, which no limit counts.
    let devices = DEVICES.into_iter().chain(["/dev/random"]).map(Path::new);
    let itself = OF_ITSELF.map(|name| Path::new("/proc/self").join(name));
    // Where one is a link, what counts is where it leads.
    let system = SYSTEM_FOLDERS.into_iter().map(Path::new).filter(|folder| !folder.is_symlink());
    let system = system.flat_map(|folder| without(folder, hidden)).chain(itself);
    let system = system.chain(OF_MEMORY.into_iter().chain([LOADER_CACHE]).map(PathBuf::from));
    let system: Vec<_> = system.collect();
    restriction(
        system.iter().map(PathBuf::as_path).chain(read_only.iter().map(|Mount(source, _)| source.as_path())),
        devices.chain(writable.iter().map(|Mount(source, _)| source.as_path())),
        *network,
    )
}

/// A program in namespaces: it may use what it sees, and write where it may.
///
/// # Errors
/// A path cannot be opened.
pub fn allow_inside(access: &Access) -> Result<Restriction> {
    if landlock_abi() < MINIMUM_ABI {
        return Ok(Restriction(None));
    }
    let places = ["/tmp", "/dev"].map(Path::new).into_iter();
    let writable = access.writable.iter().map(|Mount(_, target)| target.as_path());
    restriction([Path::new("/")].into_iter(), places.chain(writable), access.network)
}

/// Rules only add rights: what is hidden is left out by naming what is beside it.
fn without(folder: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|path| path == folder) {
        return Vec::new();
    }
    if !hidden.iter().any(|path| path.starts_with(folder)) {
        return vec![folder.to_owned()];
    }
    let entries = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| !path.is_symlink()).flat_map(|path| without(&path, hidden)).collect()
}

fn restriction<'a>(
    read_only: impl Iterator<Item = &'a Path>,
    writable: impl Iterator<Item = &'a Path>,
    network: bool,
) -> Result<Restriction> {
    // Sockets in what it was given can be connected to.
    let read = AccessFs::from_read(KNOWN) | AccessFs::ResolveUnix;
    let created = ruleset(network).context("landlock")?;
    let created = created
        .add_rules(path_beneath_rules(read_only, read))
        .and_then(|created| created.add_rules(path_beneath_rules(writable, AccessFs::from_all(KNOWN))))
        .context("landlock: a file that it may use")?;
    Ok(Restriction(Some(created)))
}

fn ruleset(network: bool) -> std::result::Result<RulesetCreated, landlock::RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let ruleset = ruleset.handle_access(AccessFs::from_all(KNOWN))?.scope(Scope::Signal)?;
    if network {
        return ruleset.create();
    }
    let tcp: BitFlags<AccessNet> = AccessNet::BindTcp | AccessNet::ConnectTcp;
    ruleset.handle_access(tcp)?.scope(Scope::AbstractUnixSocket)?.create()
}
