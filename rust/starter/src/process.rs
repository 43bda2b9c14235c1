//! One process, from its start to its end.
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use serde_json::json;

use crate::folders::Folders;
use crate::messages::{Program, Report, Settings, Start};
use crate::output::Output;
use crate::running::RunningProcesses;
use crate::users::{Claim, Identity};

/// Its channel; before it are the standard streams.
const CHANNEL: i32 = 3;
const STREAMS: u32 = 4;
/// The last that it printed, bytes.
const PRINTED: usize = 4_096;
const MEGABYTE: u64 = 1024 * 1024;
/// When memory is short, the kernel ends such a process before others.
const OOM_SCORE: &str = "500";

/// Starts a process, and waits for its end. Returns the last report about it.
pub fn run(settings: &Settings, start: &Start, running: &RunningProcesses, output: &Output) -> Report {
    let ended = started(settings, start).map(|started| {
        let StartedProcess { mut child, folders, claim } = started;
        let pid = Pid::from_raw(child.id() as i32);
        running.started(start.run, pid);
        let name = folders.as_ref().map(|folders| folders.name.clone());
        output.send(&Report::Started { run: start.run, pid: child.id(), name });
        let printed = child.stderr.take().map(last_of).unwrap_or_default();
        // Not reaped before nobody can kill it any more: its id may be another's afterwards.
        let _ = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        running.end(start.run);
        let how = child.wait().map_or_else(|error| error.to_string(), how_of);
        drop((folders, claim));
        Report::Ended { run: start.run, how, printed }
    });
    ended.unwrap_or_else(|why| {
        running.end(start.run);
        Report::not_started(start.run, why)
    })
}

/// What a process holds, in the order in which it is given back.
struct StartedProcess {
    child: Child,
    folders: Option<Folders>,
    claim: Option<Claim>,
}

fn started(settings: &Settings, start: &Start) -> Result<StartedProcess, String> {
    let program = settings.programs.get(&start.program).ok_or_else(|| format!("no program {}", start.program))?;
    let claim = claim_for(settings, start, program)?;
    let identity = claim.as_ref().map(|claim| claim.identity);
    let folders = start.serves.then(|| Folders::make(settings, identity)).transpose()?;
    let channel = channel_of(settings, &start.channel)?;
    let child = command(settings, start, program, identity, &channel)
        .spawn()
        .map_err(|error| format!("{}: {error}", settings.launcher.display()))?;
    Ok(StartedProcess { child, folders, claim })
}

fn claim_for(settings: &Settings, start: &Start, program: &Program) -> Result<Option<Claim>, String> {
    let Some(users) = &settings.users else { return Ok(None) };
    if !program.writes_files {
        return Claim::unused(users, &settings.records).map(Some);
    }
    let folder = start.sqlite_folder.and_then(|at| settings.sqlite_folders.get(at));
    let folder = folder.ok_or("its file is in none of the folders for it")?;
    Ok(Some(Claim::owner_of(folder, users)))
}

/// A connection to the actor host, which is told whose it is.
fn channel_of(settings: &Settings, name: &str) -> Result<OwnedFd, String> {
    let connected = connect(&settings.channels)
        .and_then(|mut stream| stream.write_all(format!("{name}\n").as_bytes()).map(|()| stream));
    connected.map(OwnedFd::from).map_err(|error| format!("{}: {error}", settings.channels.display()))
}

/// The folder belongs to the actor host, which must not lead this program to sockets of others: no link is followed.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = libc::O_PATH | libc::O_NOFOLLOW;
    let socket = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let folder = fs::symlink_metadata(path.parent().unwrap_or(path))?;
    let found = socket.metadata()?;
    // An actor host without a user of its own has that of this program.
    let is_owners = found.uid() == folder.uid() || found.uid() == nix::unistd::getuid().as_raw();
    if !found.file_type().is_socket() || !is_owners {
        return Err(io::Error::other("it is no socket of the owner of its folder"));
    }
    UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd()))
}

fn command(
    settings: &Settings,
    start: &Start,
    program: &Program,
    identity: Option<Identity>,
    channel: &OwnedFd,
) -> Command {
    let groups = settings.users.as_ref().map_or(&[][..], |users| &users.groups);
    let plan = json!({
        "parent": std::process::id(),
        "streams": STREAMS,
        "cwd": "/",
        "nice": null,
        "limits": null,
        "identity": identity.map(|Identity { user, group }| json!({ "user": user, "group": group, "groups": groups })),
        "cgroup": null,
        "keepsAttributes": false,
        "access": null,
        "namespaces": null,
        "own": { "sockets": program.sockets, "connectsTo": null },
    });
    let memory = start.memory_mb.to_string();
    let mut command = Command::new(&settings.launcher);
    command
        .arg(plan.to_string())
        .arg(&program.file)
        .args(program.arguments.iter().map(|argument| argument.replace("{memoryMb}", &memory)))
        .arg(&start.service)
        .env_clear()
        .envs(&settings.environment)
        .env("NODE_CHANNEL_FD", CHANNEL.to_string())
        .env("NODE_CHANNEL_SERIALIZATION_MODE", "json")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let data = start.memory_mb.saturating_add(program.own_mb).saturating_mul(MEGABYTE);
    let file = (!program.writes_files).then_some(0);
    let channel = channel.as_raw_fd();
    // SAFETY: it makes system calls only.
    unsafe { command.pre_exec(move || prepare(channel, data, file)) };
    command
}

/// Runs in the process, before it is the launcher.
fn prepare(channel: i32, data: u64, file: Option<u64>) -> io::Result<()> {
    // Not closed when the launcher begins, unlike what it is a copy of.
    // SAFETY: takes numbers only.
    let done = match channel {
        CHANNEL => unsafe { libc::fcntl(CHANNEL, libc::F_SETFD, 0) },
        other => unsafe { libc::dup2(other, CHANNEL) },
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    lower(Resource::RLIMIT_CORE, 0)?;
    lower(Resource::RLIMIT_DATA, data)?;
    file.map_or(Ok(()), |bytes| lower(Resource::RLIMIT_FSIZE, bytes))?;
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    Ok(())
}

/// A limit that is lower already stays.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let (soft, hard) = getrlimit(resource)?;
    setrlimit(resource, soft.min(limit), hard.min(limit))?;
    Ok(())
}

/// Reads all, and keeps the end.
fn last_of(mut stderr: ChildStderr) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; PRINTED];
    while let Ok(count) = stderr.read(&mut buffer) {
        if count == 0 {
            break;
        }
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(PRINTED);
        kept.drain(..excess);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn how_of(status: ExitStatus) -> String {
    let signal = status.signal().and_then(|number| Signal::try_from(number).ok());
    signal.map_or_else(|| format!("exit code {}", status.code().unwrap_or_default()), |signal| signal.to_string())
}
