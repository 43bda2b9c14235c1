//! The rights of the process as its user and by capabilities.
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid, setsid};

use crate::failure::{Context, Result, check};
use crate::plan::Identity;

/// The process is killed when its parent ends.
///
/// # Errors
/// Never, with this signal.
pub fn end_with_parent() -> Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL).context("PR_SET_PDEATHSIG")
}

/// Becomes another user, and gives up all capabilities, for all programs that it becomes.
///
/// # Errors
/// This process may not become that user.
pub fn drop_all(identity: Option<&Identity>) -> Result<()> {
    drop_bounding_set()?;
    if let Some(Identity { user, group, groups }) = identity {
        let (user, group) = (Uid::from_raw(*user), Gid::from_raw(*group));
        let groups: Vec<_> = groups.iter().copied().map(Gid::from_raw).collect();
        setgroups(&groups).context("setgroups")?;
        setresgid(group, group, group).context(format_args!("group {group}"))?;
        setresuid(user, user, user).context(format_args!("user {user}"))?;
    }
    clear_capabilities()
}

/// No program that it becomes gains rights: not by set-user-ID, not by capabilities of files.
///
/// # Errors
/// Never.
pub fn never_gain_any() -> Result<()> {
    prctl::set_no_new_privs().context("PR_SET_NO_NEW_PRIVS")
}

/// The terminal of whoever has started the service is none of the program's.
///
/// # Errors
/// None that is known.
pub fn leave_terminal() -> Result<()> {
    match setsid() {
        // It leads a session already.
        Err(Errno::EPERM) | Ok(_) => Ok(()),
        Err(error) => Err(error).context("setsid"),
    }
}

/// As far as this process may: without rights of its own, `never_gain_any` does the same.
fn drop_bounding_set() -> Result<()> {
    for capability in 0..64 {
        match Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }) {
            Ok(_) => {}
            // There are no more, or it may not.
            Err(Errno::EINVAL | Errno::EPERM) => break,
            Err(error) => return Err(error).context("PR_CAPBSET_DROP"),
        }
    }
    Ok(())
}

/// Of this process.
///
/// # Errors
/// None that is known: every process may give up its own.
pub fn clear_capabilities() -> Result<()> {
    set_capabilities(&[0; 6])
}

/// Gives up all capabilities but these, as far as this process has them, and becomes no program that has others.
///
/// # Errors
/// None that is known.
pub fn keep_capabilities(kept: &[u32]) -> Result<()> {
    drop_bounding_set()?;
    let mut own = [0u32; 6];
    check(unsafe { libc::syscall(libc::SYS_capget, HEADER.as_ptr(), own.as_mut_ptr()) }, "capget")?;
    let kept = kept.iter().fold(0u32, |set, capability| set | 1 << capability);
    let left = own[PERMITTED] & kept;
    set_capabilities(&[left, left, 0, 0, 0, 0])
}

/// `struct __user_cap_header_struct`, see capget(2): the third version, this process.
const HEADER: [u32; 2] = [0x2008_0522, 0];
/// Of two of `struct __user_cap_data_struct`: effective, permitted, inheritable of the first 32 and of the others.
const PERMITTED: usize = 1;

fn set_capabilities(sets: &[u32; 6]) -> Result<()> {
    check(unsafe { libc::syscall(libc::SYS_capset, HEADER.as_ptr(), sets.as_ptr()) }, "capset")?;
    Ok(())
}
