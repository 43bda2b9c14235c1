//! How this process ends with its parent, and with nothing else.
use std::os::unix::process::parent_id;
use std::thread;
use std::time::Duration;

const WATCH_EVERY: Duration = Duration::from_secs(1);
/// The argument of a program that the kernel does not kill with its parent.
const WATCH_ARGUMENT: &str = "--watch-parent";
/// It calls hardly anything.
const STACK_BYTES: usize = 64 * 1024;

/// The actor host ends this process, also when a signal is sent to the whole process group.
pub fn ignore_signals() {
    // SAFETY: no handler is installed, and no other thread runs yet.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
    }
}

/// Starts a thread that ends the process when its parent has ended, where nothing else does. The end of the channel is
/// not enough: the main thread may be busy.
pub fn watch_if_asked() {
    if !std::env::args().any(|argument| argument == WATCH_ARGUMENT) {
        return;
    }
    let parent = parent_id();
    let watch = move || {
        while parent_id() == parent {
            thread::sleep(WATCH_EVERY);
        }
        // SAFETY: takes a number; as SIGKILL, it runs nothing more of this process.
        unsafe { libc::_exit(1) };
    };
    if let Err(error) = thread::Builder::new().stack_size(STACK_BYTES).spawn(watch) {
        eprintln!("Error: the parent cannot be watched: {error}");
        std::process::exit(1);
    }
}
