//! Runs a program in namespaces of its own, waits for it, and reports: as JSON, `{"child-pid":N}` when it begins, as
//! this machine knows it, and `{"exit-code":N}` when it has ended, 128 more than the signal if one has ended it.
//! The program is the first process of its namespace: when it ends, all others in it end, and before the monitor does.
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::process::ExitCode;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Gid, Pid, Uid, getgid, getuid, pipe2};

use crate::failure::{self, Context, Failure, Result, check};
use crate::network::Network;
use crate::plan::{Access, Namespaces, Plan, SharedNetwork};
use crate::program::Program;
use crate::{die_with_parent, files, mounts, privileges};

/// Returns the exit code of the program.
///
/// # Errors
/// The program could not be started.
pub fn run(plan: &Plan, program: &Program) -> Result<ExitCode> {
    let (Some(access), Some(namespaces)) = (&plan.access, &plan.namespaces) else {
        return Err(failure::of("namespaces without files"));
    };
    let inside = (getuid(), getgid());
    let is_first = namespaces.shared_network == SharedNetwork::First;
    if plan.identity.is_none() && is_first {
        // This comes before the network is made, whose tables belong to root.
        unshare(CloneFlags::CLONE_NEWUSER).context("a user namespace")?;
        Ids { inside: ROOT, outside: inside }.map()?;
    }
    let network = Network::prepare(plan, access.network, namespaces.shared_network)?;
    // Root needs no user namespace: without one, the limit of processes counts for each user.
    let ids = (plan.identity.is_none() && !is_first).then(|| Ids { inside, outside: (getuid(), getgid()) });
    die_with_parent(plan)?;
    let mut reports = take_reports(plan.streams);
    // Tells of a failure before the program has begun; closed when it begins.
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).context("a pipe")?;
    let Some(child) = clone_into_namespaces(&network, ids.is_some())? else {
        drop(reader);
        let failure = become_program(plan, program, (access, namespaces), ids, &writer);
        let _ = File::from(writer).write_all(failure.to_string().as_bytes());
        unsafe { libc::_exit(1) }
    };
    drop(writer);
    if plan.identity.is_none() {
        // Those in the user namespace of a shared network: it needs none from here on.
        privileges::clear_capabilities()?;
    }
    writeln!(reports, r#"{{"child-pid":{child}}}"#).context("a report")?;
    close_streams(plan.streams);

    let mut problem = String::new();
    let read = File::from(reader).read_to_string(&mut problem);
    let code = wait_for(child)?;
    read.context("the beginning of the program")?;
    if !problem.is_empty() {
        return Err(failure::of(problem));
    }
    writeln!(reports, r#"{{"exit-code":{code}}}"#).context("a report")?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// Returns why it could not.
fn become_program(
    plan: &Plan,
    program: &Program,
    (access, namespaces): (&Access, &Namespaces),
    ids: Option<Ids>,
    monitor: &OwnedFd,
) -> Failure {
    let enter = || {
        privileges::end_with_parent()?;
        expect_monitor(monitor)?;
        ids.map_or(Ok(()), Ids::map)?;
        mounts::enter(access, namespaces)
    };
    match enter() {
        Ok(()) => program.start(plan, files::allow_inside, || expect_monitor(monitor)),
        Err(failure) => failure,
    }
}

/// While it lives, it can read the other end of the pipe.
fn expect_monitor(pipe: &OwnedFd) -> Result<()> {
    let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
    poll(&mut polled, PollTimeout::ZERO).context("poll")?;
    let has_ended = polled[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR));
    if has_ended { Err(failure::of("its monitor has ended")) } else { Ok(()) }
}

/// The child, or `None` in it.
fn clone_into_namespaces(network: &Network, as_other: bool) -> Result<Option<Pid>> {
    // Not of System V and queues, nor of the name of the machine: the filter refuses all their calls.
    let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWCGROUP;
    if *network == Network::Own {
        flags |= libc::CLONE_NEWNET;
    }
    if as_other {
        flags |= libc::CLONE_NEWUSER;
    }
    // Like `fork`: this process has one thread. The first argument is the flags on both architectures.
    let child = unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) };
    let child = check(child, "namespaces")?;
    Ok((child != 0).then(|| Pid::from_raw(child as i32)))
}

const ROOT: (Uid, Gid) = (Uid::from_raw(0), Gid::from_raw(0));

/// The user in its user namespace, where no other exists, and the same in the one above.
#[derive(Clone, Copy)]
struct Ids {
    inside: (Uid, Gid),
    outside: (Uid, Gid),
}

impl Ids {
    fn map(self) -> Result<()> {
        let Self { inside: (user, group), outside: (outer_user, outer_group) } = self;
        fs::write("/proc/self/setgroups", "deny").context("setgroups")?;
        fs::write("/proc/self/uid_map", format!("{user} {outer_user} 1")).context("uid_map")?;
        fs::write("/proc/self/gid_map", format!("{group} {outer_group} 1")).context("gid_map")
    }
}

/// The program does not get it.
fn take_reports(fd: u32) -> File {
    // The service has opened it for the launcher alone.
    unsafe { File::from_raw_fd(fd as i32) }
}

/// They are the program's alone, and end when it does. Only failures are printed here.
pub fn close_streams(streams: u32) {
    for stream in (0..streams as i32).filter(|stream| *stream != libc::STDERR_FILENO) {
        unsafe { libc::close(stream) };
    }
}

fn wait_for(child: Pid) -> Result<i32> {
    loop {
        match waitpid(child, None).context("waiting for the program")? {
            WaitStatus::Exited(_, code) => return Ok(code),
            WaitStatus::Signaled(_, signal, _) => return Ok(128 + signal as i32),
            _ => {}
        }
    }
}
