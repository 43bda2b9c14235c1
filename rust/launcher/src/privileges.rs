//! The rights of the process as its user and by capabilities.
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

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

/// Of this process. `struct __user_cap_header_struct` and two of `struct __user_cap_data_struct`, see capget(2).
///
/// # Errors
/// None that is known: every process may give up its own.
pub fn clear_capabilities() -> Result<()> {
    const LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;
    let header = [LINUX_CAPABILITY_VERSION_3, 0];
    let none = [0u32; 6];
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) }, "capset")?;
    Ok(())
}
