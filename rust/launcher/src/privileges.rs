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

/// Becomes another user, and gives up all capabilities but these, for all programs that it becomes.
///
/// # Errors
/// This process may not become that user.
pub fn drop_all_but(kept: &[u32], identity: Option<&Identity>) -> Result<()> {
    drop_bounding_set(kept)?;
    if let Some(Identity { user, group, groups }) = identity {
        let (user, group) = (Uid::from_raw(*user), Gid::from_raw(*group));
        let groups: Vec<_> = groups.iter().copied().map(Gid::from_raw).collect();
        if !kept.is_empty() {
            prctl::set_keepcaps(true).context("PR_SET_KEEPCAPS")?;
        }
        setgroups(&groups).context("setgroups")?;
        setresgid(group, group, group).context(format_args!("group {group}"))?;
        setresuid(user, user, user).context(format_args!("user {user}"))?;
    }
    let own = own_of(kept)?;
    set_capabilities(own, own)?;
    // Root has what the bounding set leaves, in each program that it becomes; others what is ambient.
    let ambient = kept.iter().filter(|capability| identity.is_some() && own & 1 << **capability != 0);
    ambient.copied().try_for_each(make_ambient)
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

/// Drops all but these, as far as this process may: without rights of its own, `never_gain_any` does the same.
fn drop_bounding_set(kept: &[u32]) -> Result<()> {
    for capability in (0..64).filter(|capability| !kept.contains(capability)) {
        match Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }) {
            Ok(_) => {}
            // There are no more, or it may not.
            Err(Errno::EINVAL | Errno::EPERM) => break,
            Err(error) => return Err(error).context("PR_CAPBSET_DROP"),
        }
    }
    Ok(())
}

/// Gives up all capabilities of this process.
///
/// # Errors
/// None that is known: every process may give up its own.
pub fn clear_capabilities() -> Result<()> {
    set_capabilities(0, 0)
}

/// Gives up all capabilities but these, as far as this process has them, and becomes no program that has others.
///
/// # Errors
/// None that is known.
pub fn keep_capabilities(kept: &[u32]) -> Result<()> {
    drop_bounding_set(&[])?;
    set_capabilities(own_of(kept)?, 0)
}

fn make_ambient(capability: u32) -> Result<()> {
    let raised = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, capability, 0, 0) };
    check(raised.into(), format_args!("capability {capability}"))?;
    Ok(())
}

/// `struct __user_cap_header_struct`, see capget(2): the third version, this process.
const HEADER: [u32; 2] = [0x2008_0522, 0];

/// Those of them that this process may have, one bit for each.
fn own_of(capabilities: &[u32]) -> Result<u32> {
    // Two of `struct __user_cap_data_struct`: effective, permitted, inheritable of the first 32 and of the others.
    let mut own = [0u32; 6];
    check(unsafe { libc::syscall(libc::SYS_capget, HEADER.as_ptr(), own.as_mut_ptr()) }, "capget")?;
    let [_, permitted, ..] = own;
    Ok(permitted & capabilities.iter().fold(0, |set, capability| set | 1 << capability))
}

fn set_capabilities(permitted: u32, inheritable: u32) -> Result<()> {
    let sets = [permitted, permitted, inheritable, 0, 0, 0];
    check(unsafe { libc::syscall(libc::SYS_capset, HEADER.as_ptr(), sets.as_ptr()) }, "capset")?;
    Ok(())
}
