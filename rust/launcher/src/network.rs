//! The network namespace of a program. One without interfaces can be shared: to make it takes the kernel longer than
//! all other namespaces together.
use std::os::fd::{FromRawFd, OwnedFd};

use nix::sched::{CloneFlags, setns};

use crate::failure::{Context, Result};
use crate::files::{ABI_WITH_SCOPES, landlock_abi};
use crate::plan::{Plan, SharedNetwork};

#[derive(PartialEq, Eq)]
pub enum Network {
    OfMachine,
    Own,
    /// The monitor has entered it, and the program is cloned into it.
    Shared,
}

impl Network {
    /// Enters the shared one. The filter refuses all sockets of a network in it.
    ///
    /// # Errors
    /// The kernel does not allow it.
    pub fn prepare(plan: &Plan, is_of_machine: bool, shared: SharedNetwork) -> Result<Self> {
        if is_of_machine {
            return Ok(Self::OfMachine);
        }
        if shared != SharedNetwork::Next {
            return Ok(Self::Own);
        }
        // Both are taken in any case, or they would stay open.
        let network = take(plan.streams + 1);
        // Who may enter a network is root in its user namespace. That of root itself is the machine's.
        let users = plan.identity.is_none().then(|| take(plan.streams + 2));
        // Abstract sockets belong to a network: Landlock has to refuse those of other programs.
        if landlock_abi() < ABI_WITH_SCOPES {
            return Ok(Self::Own);
        }
        if let Some(users) = users {
            setns(users, CloneFlags::CLONE_NEWUSER).context("the users of the shared network")?;
        }
        setns(network, CloneFlags::CLONE_NEWNET).context("the shared network")?;
        Ok(Self::Shared)
    }
}

/// The service has opened it for the launcher alone.
fn take(descriptor: u32) -> OwnedFd {
    unsafe { OwnedFd::from_raw_fd(descriptor as i32) }
}
