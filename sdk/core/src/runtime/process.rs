//! The contract between the gateway and a handler process.
//!
//! | variable | meaning |
//! |---|---|
//! | `EDGE_SOCKET` | path of the Unix socket to bind and listen on |
//! | `EDGE_CONTROL_FD` | an inherited, connected stream: `ready\n` is written to it; the process ends at its end |
//! | `EDGE_MAX_THREADS` | most threads that run handlers at once, default 64; every connection has at least one |

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::exit;
use std::thread;
use std::time::Duration;

const DEFAULT_MAX_THREADS: usize = 64;
/// For threads that only wait and call into the kernel.
pub const SMALL_STACK_BYTES: usize = 64 * 1024;

/// What the environment says.
pub struct Process {
    /// Most threads that run handlers at once.
    pub max_threads: usize,
    socket: PathBuf,
    control: Option<File>,
}

impl Process {
    /// Reads the environment; ends the process with code 2 and a sentence if it does not make sense.
    pub fn from_environment() -> Self {
        die_with_parent();
        let Some(socket) = std::env::var_os("EDGE_SOCKET") else {
            refuse("this program is an endpoint handler and is started by the gateway. To run it by hand, set EDGE_SOCKET to the path of the Unix socket it shall listen on.")
        };
        Process {
            max_threads: number("EDGE_MAX_THREADS").unwrap_or(DEFAULT_MAX_THREADS).max(1),
            socket: socket.into(),
            control: number("EDGE_CONTROL_FD").map(adopt),
        }
    }

    /// Listens, and tells the gateway so. From here on the process ends when the gateway closes its control stream.
    pub fn listen(self) -> UnixListener {
        let listener = UnixListener::bind(&self.socket)
            .unwrap_or_else(|error| refuse(&format!("cannot listen on {}: {error}", self.socket.display())));
        if let Some(mut control) = self.control {
            if let Err(error) = control.write_all(b"ready\n") {
                refuse(&format!("cannot write to the control stream (EDGE_CONTROL_FD): {error}"));
            }
            let watch = move || {
                wait_for_end(control);
                exit(0)
            };
            spawn_needed("control", watch);
        }
        listener
    }
}

/// Starts a thread that needs little stack.
///
/// # Errors
/// What the system says.
pub fn spawn_small(name: &str, f: impl FnOnce() + Send + 'static) -> io::Result<thread::Thread> {
    let builder = thread::Builder::new().name(name.to_owned()).stack_size(SMALL_STACK_BYTES);
    builder.spawn(f).map(|handle| handle.thread().clone())
}

/// The same for a thread without which the process cannot do its work: failing ends it.
pub fn spawn_needed(name: &str, f: impl FnOnce() + Send + 'static) -> thread::Thread {
    spawn_small(name, f).unwrap_or_else(|error| refuse(&format!("cannot start the {name} thread: {error}")))
}

/// Reports a failed accept. It fails when the process is out of file descriptors: waiting lets some come back, where
/// trying again at once would only burn a core.
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

/// Ends the process with a sentence: it cannot do its work.
pub fn refuse(why: &str) -> ! {
    eprintln!("edge-gateway-sdk: {why}");
    exit(2)
}

fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    let text = std::env::var(variable).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => refuse(&format!("{variable} must be a number, and is {text:?}")),
    }
}

/// Takes over an inherited descriptor, and keeps it from what the handler may start: a child that held it open would
/// keep the gateway from noticing anything.
fn adopt(fd: RawFd) -> File {
    // SAFETY: the gateway passes this descriptor to us and nobody else in the process knows it.
    let inherited = unsafe { OwnedFd::from_raw_fd(fd) };
    // Cloning sets FD_CLOEXEC on the new descriptor; the inherited one is closed here.
    match inherited.try_clone() {
        Ok(private) => private.into(),
        Err(error) => refuse(&format!("EDGE_CONTROL_FD is {fd}, which is not an open descriptor: {error}")),
    }
}

/// Asks the kernel to kill this process when its parent dies, so that a killed gateway leaves no orphans.
#[cfg(target_os = "linux")]
fn die_with_parent() {
    use std::os::raw::{c_int, c_ulong};
    extern "C" {
        fn prctl(option: c_int, ...) -> c_int;
    }
    const PR_SET_PDEATHSIG: c_int = 1;
    const SIGKILL: c_ulong = 9;
    // SAFETY: this option takes one number and touches no memory. Where it fails, the control stream's end remains.
    unsafe { prctl(PR_SET_PDEATHSIG, SIGKILL) };
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent() {}
