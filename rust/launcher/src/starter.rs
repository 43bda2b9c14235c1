//! Leaves the program behind that starts others for this process, which gives up the rights that this takes. It is a
//! child of the process, has the other end of a socket as its descriptor 3, and ends when that is closed.
use std::convert::Infallible;
use std::ffi::CString;
use std::os::fd::OwnedFd;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{ForkResult, dup2_raw, execve, fork};

use crate::failure::{Context, Result};
use crate::plan::Plan;
use crate::{limits, privileges};

const CONTROL: i32 = 3;
/// The rights to give folders to other users, to enter and remove them, and to start and end programs as them:
/// CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP
/// (capabilities(7)).
const NEEDED: [u32; 8] = [0, 1, 2, 3, 5, 6, 7, 8];

/// Starts it. Returns the descriptor by which this process asks it.
///
/// # Errors
/// It could not be started; what is known only later, it prints.
pub fn start(plan: &Plan, words: &[String]) -> Result<OwnedFd> {
    let (own, other) =
        socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).context("a pair of sockets")?;
    // SAFETY: this process has one thread.
    if let ForkResult::Child = unsafe { fork() }.context("fork")? {
        drop(other);
        let Err(failure) = become_starter(own, words);
        eprintln!("{failure}");
        // SAFETY: as SIGKILL, it runs nothing more of this process.
        unsafe { libc::_exit(1) }
    }
    drop(own);
    limits::place_descriptor(other, plan.streams)
}

fn become_starter(control: OwnedFd, words: &[String]) -> Result<Infallible> {
    let words = words.iter().map(|word| CString::new(word.as_str())).collect::<std::result::Result<Vec<_>, _>>();
    let words = words.context("an argument")?;
    let [file, ..] = words.as_slice() else { return Err(crate::failure::of("no starter is named")) };
    // SAFETY: whatever has this number is not needed any more.
    let control = unsafe { dup2_raw(control, CONTROL) }.context("dup2")?;
    limits::close_descriptors_from(CONTROL as u32 + 1)?;
    privileges::drop_all_but(&NEEDED, None)?;
    privileges::never_gain_any()?;
    let failure = execve(file, &words, &[] as &[CString]).context(file.to_string_lossy());
    drop(control);
    failure
}
