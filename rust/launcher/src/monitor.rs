//! Runs a program in namespaces of its own, waits for it, and reports: as JSON, `{"child-pid":N}` when it begins, as
//! this machine knows it, and `{"exit-code":N}` when it has ended, 128 more than the signal if one has ended it.
//! The program is the first process of its namespace: when it ends, all others in it end, and before the monitor does.
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::process::ExitCode;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Gid, Pid, Uid, getgid, getuid, pipe2};

use crate::failure::{self, Context, Failure, Result, check};
use crate::plan::{Access, Namespaces, Plan};
use crate::program::Program;
use crate::{die_with_parent, files, mounts};

/// Returns the exit code of the program.
///
/// # Errors
/// The program could not be started.
pub fn run(plan: &Plan, program: &Program) -> Result<ExitCode> {
    die_with_parent(plan)?;
    let (Some(access), Some(namespaces)) = (&plan.access, &plan.namespaces) else {
        return Err(failure::of("namespaces without files"));
    };
    let mut reports = take_reports(plan.streams);
    // Tells of a failure before the program has begun; closed when it begins.
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).context("a pipe")?;
    let owner = (getuid(), getgid());
    let network = Network::of(access, namespaces, plan.streams + 1);
    let Some(child) = clone_into_namespaces(&network, plan.identity.is_none())? else {
        drop(reader);
        let failure = become_program(plan, program, (access, namespaces), network, owner, &writer);
        let _ = File::from(writer).write_all(failure.to_string().as_bytes());
        unsafe { libc::_exit(1) }
    };
    drop((writer, network));
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
    network: Network,
    owner: (Uid, Gid),
    monitor: &OwnedFd,
) -> Failure {
    let enter = || {
        crate::privileges::end_with_parent()?;
        expect_monitor(monitor)?;
        if plan.identity.is_none() {
            map_ids(owner)?;
        }
        network.enter()?;
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

/// The network namespace of a program.
enum Network {
    OfMachine,
    /// Without interfaces. To make it takes the kernel longer than all other namespaces together.
    Own,
    /// Without interfaces either; and the filter refuses all sockets of a network.
    Shared(OwnedFd),
}

impl Network {
    fn of(access: &Access, namespaces: &Namespaces, shared: u32) -> Self {
        if access.network {
            return Self::OfMachine;
        }
        // Abstract sockets belong to a network: Landlock has to refuse those of other programs.
        if !namespaces.shares_network || files::landlock_abi() < files::ABI_WITH_SCOPES {
            return Self::Own;
        }
        // The service has opened it for the launcher alone.
        Self::Shared(unsafe { OwnedFd::from_raw_fd(shared as i32) })
    }

    fn enter(self) -> Result<()> {
        let Self::Shared(network) = self else { return Ok(()) };
        setns(network, CloneFlags::CLONE_NEWNET).context("the network that programs share")
    }
}

/// The child, or `None` in it. Root needs no user namespace: without one, the limit of processes counts for each user.
fn clone_into_namespaces(network: &Network, as_other: bool) -> Result<Option<Pid>> {
    // Not of System V and queues, nor of the name of the machine: the filter refuses all their calls.
    let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWCGROUP;
    if matches!(network, Network::Own) {
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

/// In the user namespace this user is the same as outside, and no other exists.
fn map_ids((user, group): (Uid, Gid)) -> Result<()> {
    fs::write("/proc/self/setgroups", "deny").context("setgroups")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).context("uid_map")?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).context("gid_map")
}

/// The program does not get it.
fn take_reports(fd: u32) -> File {
    // The service has opened it for the launcher alone.
    unsafe { File::from_raw_fd(fd as i32) }
}

/// They are the program's alone, and end when it does. Only failures are printed here.
fn close_streams(streams: u32) {
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
