//! Limits of the kernel, priority and cgroup of a process; those that it starts inherit them.
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::dup2_raw;

use crate::failure::{Context, Result};
use crate::plan::Limits;

/// The kernel ends these processes first when the machine has no memory left.
const OOM_SCORE: &str = "1000";

/// # Errors
/// It is not there any more, or this process may not join it.
pub fn join_cgroup(folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    // 0 is this process.
    fs::write(folder.join("cgroup.procs"), "0").context(folder.display())
}

/// Lowers the priority of this process, and has it ended first when memory runs out. The product goes on where a
/// container allows neither.
///
/// # Errors
/// Something else fails.
pub fn lower_priority(nice: i32) -> Result<()> {
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    match Errno::result(result) {
        Ok(_) | Err(Errno::EACCES | Errno::EPERM) => {}
        Err(error) => return Err(error).context("its priority"),
    }
    match fs::write("/proc/self/oom_score_adj", OOM_SCORE) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            Err(error).context("its OOM score")
        }
        _ => Ok(()),
    }
}

/// # Errors
/// This process may not raise a limit so far.
pub fn set(limits: &Limits) -> Result<()> {
    let all = [
        (Resource::RLIMIT_CORE, Some(0), "core dumps"),
        (Resource::RLIMIT_AS, Some(limits.address_space_bytes), "address space"),
        (Resource::RLIMIT_FSIZE, Some(limits.file_bytes), "size of files"),
        (Resource::RLIMIT_NOFILE, Some(limits.open_files), "open files"),
        (Resource::RLIMIT_CPU, limits.cpu_seconds, "processor time"),
        (Resource::RLIMIT_NPROC, limits.processes, "processes"),
    ];
    for (resource, limit, name) in all {
        if let Some(limit) = limit {
            setrlimit(resource, limit, limit).context(format_args!("the limit of {name} ({limit})"))?;
        }
    }
    Ok(())
}

/// Gives a descriptor the number after those of the program, which it keeps then.
///
/// # Errors
/// None is free.
pub fn place_descriptor(descriptor: OwnedFd, number: u32) -> Result<OwnedFd> {
    // Elsewhere first: it may have that number already, and would be closed with it.
    let elsewhere = fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(number as i32 + 1)).context("a descriptor")?;
    // SAFETY: nothing else in this process knows it.
    let elsewhere = unsafe { OwnedFd::from_raw_fd(elsewhere) };
    drop(descriptor);
    // SAFETY: the launcher has opened nothing else that it needs.
    unsafe { dup2_raw(elsewhere, number as i32) }.context("dup2")
}

/// They are closed when the program begins.
///
/// # Errors
/// There is no /proc, and the kernel is older than Linux 5.11.
pub fn close_descriptors_from(first: u32) -> Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    match Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) }) {
        Err(Errno::ENOSYS | Errno::EINVAL) => close_listed_from(first),
        result => result.map(|_| ()).context("close_range"),
    }
}

fn close_listed_from(first: u32) -> Result<()> {
    for entry in fs::read_dir("/proc/self/fd").context("/proc/self/fd")?.flatten() {
        let fd = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        if let Some(fd) = fd.filter(|fd| *fd >= first) {
            unsafe { libc::fcntl(fd as i32, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}
