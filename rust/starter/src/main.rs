//! Starts the processes of services for an actor host, which itself has no rights of root: each process runs as a user
//! that no other program has, with folders for its sockets, limits, and a channel to the actor host.
//!
//! `edge-starter SETTINGS`, where SETTINGS is JSON, see `messages.rs`; requests come and reports go by the socket with
//! the descriptor 3. It takes from the actor host which service to start or end, its memory, and which file of the
//! folders for sqlite services to look for; programs, users and folders are told by whoever starts both. It ends when
//! the actor host does, or says what is no request, and with it all that it has started.
mod folders;
mod look;
mod messages;
mod output;
mod process;
mod running;
mod users;

use std::io::{BufRead, BufReader};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use messages::{Request, Settings};
use nix::sys::signal::{SigHandler, Signal};
use output::Output;
use running::RunningProcesses;

const CONTROL: RawFd = 3;

/// A thread waits for each process; it reads a little, and calls nothing deep.
const STACK_BYTES: usize = 256 * 1024;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("edge-starter: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    leave_group();
    let text = std::env::args().nth(1).ok_or("usage: edge-starter SETTINGS")?;
    let settings: Settings = serde_json::from_str(&text).map_err(|error| format!("the settings: {error}"))?;
    let settings = Arc::new(settings);
    let control = control().map_err(|error| format!("its channel: {error}"))?;
    let output = Arc::new(Output::new(control.try_clone().map_err(|error| format!("its channel: {error}"))?));
    let running = Arc::new(RunningProcesses::default());
    for line in BufReader::new(control).lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str(&line).map_err(|error| format!("a request: {error}"))? {
            Request::Kill { run } => running.kill(run),
            Request::Look(look) => {
                let (settings, output) = (settings.clone(), output.clone());
                // Apart: a file system of a network may not answer.
                thread::Builder::new()
                    .stack_size(STACK_BYTES)
                    .spawn(move || output.send(&look::look(&settings, &look)))
                    .map_err(|error| format!("no thread: {error}"))?;
            }
            Request::Start(start) => {
                let run = start.run;
                running.begin(run);
                let begun = thread::Builder::new().stack_size(STACK_BYTES).spawn({
                    let (settings, output, running) = (settings.clone(), output.clone(), running.clone());
                    move || output.send(&process::run(&settings, &start, &running, &output))
                });
                if let Err(error) = begun {
                    running.end(run);
                    output.send(&messages::Report::not_started(run, format!("no thread for it: {error}")));
                }
            }
        }
    }
    // Each process has been told by the kernel that its parent ends.
    Ok(())
}

/// Signals to the whole group of the actor host are for that alone, which ends this program when it is done.
fn leave_group() {
    // It leads a group already, or does now.
    let _ = nix::unistd::setsid();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: no handler is installed. Processes of services do the same themselves.
        let _ = unsafe { nix::sys::signal::signal(signal, SigHandler::SigIgn) };
    }
}

/// The channel to the actor host. To be called once.
fn control() -> std::io::Result<UnixStream> {
    // SAFETY: takes numbers only; fails for what is no descriptor.
    if unsafe { libc::fcntl(CONTROL, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it is open, as the call before has shown, and nothing else in this process knows it.
    Ok(UnixStream::from(unsafe { OwnedFd::from_raw_fd(CONTROL) }))
}
