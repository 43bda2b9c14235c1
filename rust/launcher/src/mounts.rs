//! The root of a program in namespaces of its own: system folders, what it was given, its own /proc and /tmp, and
//! harmless devices, all of it read-only but for /tmp and what is given as writable. The mount calls that are used came
//! with Linux 5.12: <https://man7.org/linux/man-pages/man2/open_tree.2.html>
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::fstat;
use nix::unistd::{chdir, pivot_root};

use crate::failure::{Context, Result, check};
use crate::plan::{Access, Mount, Namespaces};

/// Folders of programs and libraries; on most systems all but /usr are links into it.
pub const SYSTEM_FOLDERS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Says where the dynamic loader finds other libraries.
pub const LOADER_CACHE: &str = "/etc/ld.so.cache";
/// Whether the kernel gives out more memory than there is.
pub const OVERCOMMIT: &str = "/proc/sys/vm/overcommit_memory";
/// The devices in /dev.
pub const DEVICES: [&str; 3] = ["/dev/null", "/dev/full", "/dev/urandom"];
/// The full device reads as zeros, too, and cannot be mapped as shared memory, which no limit counts. Both kinds of
/// random ones give the same; a mount is a part of the cost of a start, a link is not.
const LINKS_OF_DEV: [(&str, &str); 6] = [
    ("dev/zero", "full"),
    ("dev/random", "urandom"),
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
];

/// Where the new root is put together. What is below it on the machine is opened before.
const STAGE: &str = "/tmp";
/// Options of what is mounted over a hidden folder, which may need folders for mounts.
const HIDDEN: &str = "mode=755,size=1m";
const HARMLESS: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);
const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
const WRITABLE: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// Makes the root of this process, which must have namespaces of its own, and enters it.
///
/// # Errors
/// Something that was given does not exist, or the kernel does not allow it.
pub fn enter(access: &Access, namespaces: &Namespaces) -> Result<()> {
    // Nothing of what follows is seen outside, nor the other way round.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>).context("/")?;
    let given = open_given(access)?;
    let system = SYSTEM_FOLDERS.into_iter().filter_map(SystemFolder::open).collect::<Result<Vec<_>>>()?;
    let devices = DEVICES.map(|path| Ok((path, Tree::open(Path::new(path))?)));
    let devices = devices.into_iter().collect::<Result<Vec<_>>>()?;
    let hidden = access.hidden.iter().map(|path| Hidden::open(path)).collect::<Result<Vec<_>>>()?;
    let loader_cache = Tree::open(Path::new(LOADER_CACHE));

    mount_tmpfs(STAGE, "mode=755")?;
    chdir(STAGE).context(STAGE)?;
    for folder in system {
        folder.place()?;
    }
    for path in &hidden {
        path.place()?;
    }
    make_folder(Path::new("etc"))?;
    if let Ok(cache) = loader_cache {
        cache.restrict(READ_ONLY)?.place(Path::new(LOADER_CACHE))?;
    }
    mount_proc(namespaces.shows_overcommit)?;
    mount_dev(devices)?;
    mount_tmp(namespaces.tmp_bytes)?;
    place_given(given)?;
    for folder in hidden.iter().filter(|hidden| hidden.is_folder()) {
        make_read_only(inside(&folder.path))?;
    }
    make_read_only(Path::new("."))?;

    pivot_root(".", ".").context("pivot_root")?;
    umount2(".", MntFlags::MNT_DETACH).context("the old root")?;
    chdir("/").context("/")
}

/// A file, or a folder with all that is mounted in it, that is not attached anywhere yet.
pub struct Tree {
    fd: OwnedFd,
    source: PathBuf,
    is_folder: bool,
}

impl Tree {
    /// # Errors
    /// It is not there, or the kernel does not allow it.
    pub fn open(source: &Path) -> Result<Self> {
        let path = c_string(source)?;
        let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
        let fd = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
        let fd = unsafe { OwnedFd::from_raw_fd(check(fd, source.display())? as i32) };
        let status = fstat(&fd).context(source.display())?;
        let is_folder = status.st_mode & libc::S_IFMT == libc::S_IFDIR;
        Ok(Self { fd, source: source.to_owned(), is_folder })
    }

    /// Sets attributes of mount_setattr(2) for all of it.
    fn restrict(self, attributes: u64) -> Result<Self> {
        set_attributes(self.fd.as_raw_fd(), Path::new(""), libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, attributes)?;
        Ok(self)
    }

    /// Attaches it at a path below the current folder, which is the root or will be.
    ///
    /// # Errors
    /// There is something else.
    pub fn place(&self, target: &Path) -> Result<()> {
        let target = inside(target);
        if self.is_folder {
            make_folder(target)?;
        } else {
            make_file(target)?;
        }
        let path = c_string(target)?;
        let moved = unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                self.fd.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_FDCWD,
                path.as_ptr(),
                libc::MOVE_MOUNT_F_EMPTY_PATH,
            )
        };
        check(moved, format_args!("{} at /{}", self.source.display(), target.display()))?;
        Ok(())
    }
}

enum SystemFolder {
    Link(&'static str, PathBuf),
    Folder(&'static str, Tree),
}

impl SystemFolder {
    /// `None` when the machine does not have it.
    fn open(path: &'static str) -> Option<Result<Self>> {
        let status = fs::symlink_metadata(path).ok()?;
        Some(if status.is_symlink() {
            fs::read_link(path).map(|link| Self::Link(path, link)).context(path)
        } else {
            Tree::open(Path::new(path)).map(|tree| Self::Folder(path, tree))
        })
    }

    fn place(self) -> Result<()> {
        match self {
            Self::Link(path, link) => symlink(link, inside(Path::new(path))).context(path),
            Self::Folder(path, tree) => tree.restrict(READ_ONLY)?.place(Path::new(path)),
        }
    }
}

/// Something below a system folder that is empty inside.
struct Hidden {
    path: PathBuf,
    /// What stands in its place; a folder gets a file system of its own.
    file: Option<Tree>,
}

impl Hidden {
    fn open(path: &Path) -> Result<Self> {
        let is_folder = fs::metadata(path).context(path.display())?.is_dir();
        let file = if is_folder { None } else { Some(Tree::open(Path::new("/dev/null"))?) };
        Ok(Self { path: path.to_owned(), file })
    }

    fn is_folder(&self) -> bool {
        self.file.is_none()
    }

    fn place(&self) -> Result<()> {
        match &self.file {
            Some(file) => file.place(&self.path),
            None => mount_tmpfs(inside(&self.path), HIDDEN),
        }
    }
}

type AccessTrees<'a> = Vec<(&'a Path, Tree)>;

/// Outer folders first, so that they do not hide inner mounts.
fn open_given(access: &Access) -> Result<AccessTrees<'_>> {
    let Access { read_only, writable, .. } = access;
    let mut given = Vec::with_capacity(read_only.len() + writable.len());
    for (mounts, attributes) in [(read_only, READ_ONLY), (writable, WRITABLE)] {
        for Mount(source, target) in mounts {
            given.push((target.as_path(), Tree::open(source)?.restrict(attributes)?));
        }
    }
    given.sort_by_key(|(target, _)| target.components().count());
    Ok(given)
}

fn place_given(given: AccessTrees<'_>) -> Result<()> {
    for (at, (target, tree)) in given.iter().enumerate() {
        // In another one, the folders above it are there.
        let is_in_another = given[..at].iter().any(|(outer, _)| target.starts_with(outer));
        if !is_in_another {
            make_folder(inside(target.parent().unwrap_or(target)))?;
        }
        tree.place(target)?;
    }
    Ok(())
}

/// Its processes. Of the machine nothing, or the one file that allocators ask for: that of rustc takes memory for
/// scarce when it cannot know, and maps it in several times as many pieces. A file system of processes alone has no
/// place for it; so it is mounted beside that file, with links to what a process finds of itself and of the first one.
fn mount_proc(shows_overcommit: bool) -> Result<()> {
    if !shows_overcommit {
        return mount_processes("proc");
    }
    mount_processes("proc/processes")?;
    for process in ["self", "thread-self", "1"] {
        symlink(format!("processes/{process}"), format!("proc/{process}")).context(process)?;
    }
    let policy = match fs::read(OVERCOMMIT) {
        Ok(policy) => policy,
        // The /proc of the service may have processes only, too.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => return Ok(()),
        Err(error) => return Err(error).context(OVERCOMMIT),
    };
    make_folder(Path::new("proc/sys/vm"))?;
    fs::write(inside(Path::new(OVERCOMMIT)), policy).context(OVERCOMMIT)
}

/// Read-only: otherwise a program could raise its priority, and lower its OOM score.
fn mount_processes(target: &str) -> Result<()> {
    make_folder(Path::new(target))?;
    let flags = HARMLESS | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
    mount(Some("proc"), target, Some("proc"), flags, Some("subset=pid")).context(target)
}

fn mount_dev(devices: Vec<(&str, Tree)>) -> Result<()> {
    make_folder(Path::new("dev"))?;
    for (target, device) in devices {
        device.place(Path::new(target))?;
    }
    for (link, target) in LINKS_OF_DEV {
        symlink(target, link).context(link)?;
    }
    make_folder(Path::new("dev/shm"))
}

/// The only one that is written to: its size is limited, because its memory counts for no limit of the program.
fn mount_tmp(bytes: u64) -> Result<()> {
    make_folder(Path::new("tmp"))?;
    mount_tmpfs("tmp", &format!("mode=1777,size={bytes}"))
}

/// # Errors
/// The kernel does not allow it.
pub fn mount_tmpfs(target: impl AsRef<Path>, options: &str) -> Result<()> {
    let target = target.as_ref();
    mount(Some("tmpfs"), target, Some("tmpfs"), HARMLESS, Some(options)).context(target.display())
}

/// # Errors
/// Nothing is mounted there.
pub fn make_read_only(path: &Path) -> Result<()> {
    set_attributes(libc::AT_FDCWD, path, 0, libc::MOUNT_ATTR_RDONLY)
}

fn set_attributes(at: i32, path: &Path, flags: i32, attributes: u64) -> Result<()> {
    let attributes = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let name = c_string(path)?;
    let size = size_of_val(&attributes);
    let set = unsafe { libc::syscall(libc::SYS_mount_setattr, at, name.as_ptr(), flags, &raw const attributes, size) };
    check(set, format_args!("mount_setattr {}", path.display()))?;
    Ok(())
}

/// Makes it, and those above it, unless they are there. All users may enter them.
///
/// # Errors
/// There is something else, or no room.
pub fn make_folder(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path).context(path.display())
}

/// Something is mounted on it.
fn make_file(path: &Path) -> Result<()> {
    match File::create_new(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error).context(path.display()),
        _ => Ok(()),
    }
}

/// A path of the new root while it is the current folder.
pub fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn c_string(path: &Path) -> Result<std::ffi::CString> {
    std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).context(path.display())
}
