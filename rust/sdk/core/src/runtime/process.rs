//! The contract between the gateway and a handler process.
//!
//! | variable | meaning |
//! |---|---|
//! | `EDGE_SOCKET` | path of the Unix socket to bind and listen on |
//! | `EDGE_CONTROL_FD` | an inherited, connected stream: [`Takes::ready_line`] is written to it; the process ends at its end |
//! | `EDGE_PROTOCOL` | the version of frames that the gateway knows, 1 if it is not set: that expects `ready\n` of all |
//! | `EDGE_LOG_FD` | an inherited stream for records of the log, see `records.rs` |
//! | `EDGE_MAX_THREADS` | most threads that run handlers at once, default 64; every connection has at least one |

use super::threads::spawn_small;
use crate::wire::frame::{STREAM_VERSION, VERSION};
use crate::wire::takes::Takes;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::exit;
use std::thread;
use std::time::Duration;

const DEFAULT_MAX_THREADS: usize = 64;

/// What the environment says.
pub struct Process {
    /// Most threads that run handlers at once.
    pub max_threads: usize,
    socket: PathBuf,
    control: Option<File>,
    protocol: u8,
    /// Takes records of the log.
    pub log: Option<File>,
}

impl Process {
    /// Reads the environment; ends the process with code 2 and a message if it is invalid.
    pub fn from_environment() -> Self {
        die_with_parent();
        let Some(socket) = std::env::var_os("EDGE_SOCKET") else {
            fatal("this program is an endpoint handler and is started by the gateway. To run it by hand, set EDGE_SOCKET to the path of the Unix socket to listen on.")
        };
        Process {
            max_threads: number("EDGE_MAX_THREADS").unwrap_or(DEFAULT_MAX_THREADS).max(1),
            socket: socket.into(),
            protocol: number("EDGE_PROTOCOL").unwrap_or(VERSION),
            control: number("EDGE_CONTROL_FD").map(|fd| inherit("EDGE_CONTROL_FD", fd)),
            log: number("EDGE_LOG_FD").map(|fd| inherit("EDGE_LOG_FD", fd)),
        }
    }

    /// Listens, and reports it to the gateway, with what the handler takes. From here on the process ends when the
    /// gateway closes the control stream.
    pub fn listen(self, takes: Takes) -> UnixListener {
        let listener = UnixListener::bind(&self.socket)
            .unwrap_or_else(|error| fatal(&format!("cannot listen on {}: {error}", self.socket.display())));
        if let Some(mut control) = self.control {
            let line = if self.protocol >= STREAM_VERSION { takes } else { Takes::Whole }.ready_line();
            if let Err(error) = control.write_all(line.as_bytes()) {
                fatal(&format!("cannot write to the control stream (EDGE_CONTROL_FD): {error}"));
            }
            spawn_or_exit("control", move || {
                wait_for_end(control);
                exit(0)
            });
        }
        listener
    }
}

/// Starts a thread that needs little stack, without which the process cannot work: ends the process if there is none.
pub fn spawn_or_exit(name: &str, f: impl FnOnce() + Send + 'static) -> thread::Thread {
    spawn_small(name, f).unwrap_or_else(|error| fatal(&format!("cannot start the {name} thread: {error}")))
}

/// Reports a failed accept. It fails when the process is out of file descriptors: some may be closed during the pause,
/// where trying again at once would only burn a core.
pub fn accept_failed(error: &io::Error) {
    eprintln!("edge-gateway-sdk: accepting a connection failed: {error}");
    thread::sleep(Duration::from_millis(50));
}

fn wait_for_end(mut control: File) {
    let mut ignored = [0; 64];
    loop {
        match control.read(&mut ignored) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Ends the process with code 2 and a message.
pub fn fatal(why: &str) -> ! {
    eprintln!("edge-gateway-sdk: {why}");
    exit(2)
}

fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    let text = std::env::var(variable).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => fatal(&format!("{variable} must be a number, and is {text:?}")),
    }
}

/// Takes over an inherited descriptor, and closes it in what the handler may start: a child that held it open would
/// hide the end of this process from the gateway.
fn inherit(variable: &str, fd: RawFd) -> File {
    // SAFETY: the gateway passes this descriptor for us to own, and nothing else in the process uses it.
    let inherited = unsafe { OwnedFd::from_raw_fd(fd) };
    // Cloning sets FD_CLOEXEC on the new descriptor; the inherited one is closed here.
    match inherited.try_clone() {
        Ok(private) => private.into(),
        Err(error) => fatal(&format!("{variable} is {fd}, which is not an open descriptor: {error}")),
    }
}

/// Asks the kernel to kill this process when its parent dies, so that a killed gateway leaves no orphans.
#[cfg(target_os = "linux")]
fn die_with_parent() {
    // SAFETY: this option takes one number and touches no memory. If it fails, the end of the control stream remains.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) };
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent() {}
