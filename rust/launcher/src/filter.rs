//! The system calls that untrusted programs are refused: those that create namespaces or mounts, look into other
//! processes, use parts of the kernel that no handler or compiler needs, take memory that no limit counts, or raise
//! the share of the processor. <https://docs.kernel.org/userspace-api/seccomp_filter.html>
use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::failure::{Context, Result};
use crate::files::{ABI_WITH_SCOPES, landlock_abi};
use crate::plan::{Plan, Sockets};

/// Rules by system call: the arguments with which it is refused.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type CompileResult<T> = std::result::Result<T, BackendError>;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

/// The first that is newer than these lists, the same on both architectures; those of the x32 interface are above, too.
/// Libraries do without a call that does not exist.
const FIRST_UNKNOWN: i64 = libc::SYS_mseal + 1;

const REFUSED: &[i64] = &[
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    STATMOUNT,
    LISTMOUNT,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    // Memory that belongs to no process, and that no limit counts.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    // So does this, and programs of the same user find that of each other by number.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // The kernel gives each session a share of the processor. By its session, a program is found and ended.
    libc::SYS_setsid,
    // Large parts of the kernel that are not needed.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_perf_event_open,
    libc::SYS_fanotify_init,
    // Tells what happens in folders that a program may not read.
    libc::SYS_inotify_init1,
    libc::SYS_personality,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // The machine as a whole.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] =
    &[libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_inotify_init];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// The same on all architectures; `libc` does not have them.
const STATMOUNT: i64 = 457;
const LISTMOUNT: i64 = 458;

/// Their first argument is a process; for all but the program itself, only its user is compared.
const OF_A_PROCESS: [i64; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
];
/// Their first argument says what the second one is: a process, a group or a user.
const OF_SOMEBODY: [(i64, i32); 2] = [(libc::SYS_setpriority, libc::PRIO_PROCESS as i32), (libc::SYS_ioprio_set, 1)];

/// They change what Landlock does not look at: owner, mode, times and attributes of files of the same user.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];
#[cfg(target_arch = "x86_64")]
const ATTRIBUTES_HERE: &[i64] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const ATTRIBUTES_HERE: &[i64] = &[];
const FCHMODAT2: i64 = 452;

/// Requests of `ioctl` about network interfaces, which any socket takes.
const INTERFACES: (u64, u64) = (0x8910, 0x89ef);

const SIGNALS: [i64; 5] =
    [libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo];
/// Commands of `fcntl`: `F_SETOWN` and `F_SETOWN_EX` (asm-generic/fcntl.h), the second of which `libc` does not have.
const SET_OWNER: [i32; 2] = [libc::F_SETOWN, 15];
/// Requests of `ioctl`: `FIOSETOWN` and `SIOCSPGRP` (asm-generic/sockios.h).
const SET_OWNER_OF_SOCKET: [i32; 2] = [0x8901, 0x8902];

/// Landlock refuses to empty a file from this version on.
const ABI_WITH_TRUNCATE: i64 = 3;

/// Namespaces of a `clone`. Its newer form has them in memory, which a filter cannot read.
const CLONE_NEW: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Others are not confined by a network namespace (vsock), or not needed.
const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
/// Those of a network.
const NETWORK_FAMILIES: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Filters this process and all that it starts.
///
/// # Errors
/// The kernel has no filters.
pub fn install(plan: &Plan, network: bool) -> Result<()> {
    apply(programs(plan, network))
}

/// Filters this process, which becomes a program of the product: it can make no processes, and no other sockets. Where
/// the kernel has no filters, there is none.
///
/// # Errors
/// None that is known.
pub fn install_for_own(sockets: Sockets) -> Result<()> {
    if has_filters() { apply(programs_for_own(sockets)) } else { Ok(()) }
}

/// Filters this process, which becomes one of the product that is no root: it may start programs, and types nothing
/// into the terminal that it was started from. Where the kernel has no filters, there is none.
///
/// # Errors
/// None that is known.
pub fn install_for_process() -> Result<()> {
    if has_filters() { apply(programs_for_process()) } else { Ok(()) }
}

fn apply(programs: CompileResult<Vec<BpfProgram>>) -> Result<()> {
    let programs = programs.context("the filter of system calls")?;
    apply_filter(&in_a_row(programs)).context("the filter of system calls")
}

fn has_filters() -> bool {
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP) >= 0 }
}

fn programs_for_process() -> CompileResult<Vec<BpfProgram>> {
    let needed = [libc::SYS_memfd_create, libc::SYS_setsid];
    let calls = REFUSED.iter().chain(REFUSED_HERE).copied().filter(|call| !needed.contains(call));
    let mut rules = refused_to_all()?;
    let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| rule([equal(1, request as i32)?]));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<CompileResult<_>>()?);
    Ok(vec![
        refused(unused_families()?, libc::EAFNOSUPPORT)?,
        refused(rules, libc::EPERM)?,
        refused_calls(calls.collect()),
    ])
}

fn programs_for_own(sockets: Sockets) -> CompileResult<Vec<BpfProgram>> {
    // The front gives handlers memory that they share.
    let calls = REFUSED.iter().chain(REFUSED_HERE).copied().filter(|call| *call != libc::SYS_memfd_create);
    #[cfg(target_arch = "x86_64")]
    let calls = calls.chain([libc::SYS_fork, libc::SYS_vfork]);
    let mut rules = refused_to_all()?;
    let process = condition(0, SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64), 0)?;
    rules.entry(libc::SYS_clone).or_default().push(rule([process])?);
    let mut all = vec![refused(unused_families()?, libc::EAFNOSUPPORT)?];
    if sockets == Sockets::Unix {
        all.push(refused(network_families()?, libc::EAFNOSUPPORT)?);
    }
    all.extend([refused(rules, libc::EPERM)?, refused_calls(calls.collect())]);
    Ok(all)
}

/// One for all: what a program allows, the next one is asked about. The kernel compiles each filter for itself, and
/// runs it for each call that there is when it is installed; four took a seventh of the time of a start.
fn in_a_row(programs: Vec<BpfProgram>) -> BpfProgram {
    let last = programs.len() - 1;
    let instructions = programs.into_iter().enumerate().flat_map(|(at, program)| {
        let end = program.len();
        program.into_iter().enumerate().map(move |(place, instruction)| {
            let continues = at < last && instruction == returns(libc::SECCOMP_RET_ALLOW);
            if continues { jump_over((end - place - 1) as u32) } else { instruction }
        })
    });
    instructions.collect()
}

/// The first, of the library, refuses all calls of the interface for 32 bits.
fn programs(plan: &Plan, network: bool) -> CompileResult<Vec<BpfProgram>> {
    let mut calls: Vec<_> = REFUSED.iter().chain(REFUSED_HERE).copied().collect();
    let mut rules = refused_arguments()?;
    if plan.namespaces.is_none() {
        add_what_landlock_lacks(&mut calls, &mut rules, plan, landlock_abi())?;
    }
    if !network {
        let (first, last) = INTERFACES;
        let interfaces = [condition(1, SeccompCmpOp::Ge, first)?, condition(1, SeccompCmpOp::Le, last)?];
        rules.entry(libc::SYS_ioctl).or_default().push(rule(interfaces)?);
    }
    let mut all = vec![refused(unused_families()?, libc::EAFNOSUPPORT)?];
    if !network {
        all.push(refused(network_families()?, libc::ENETUNREACH)?);
    }
    all.extend([refused(rules, libc::EPERM)?, refused_calls(calls)]);
    Ok(all)
}

/// With namespaces there are no other processes, and no files of others.
fn add_what_landlock_lacks(calls: &mut Vec<i64>, rules: &mut Rules, plan: &Plan, abi: i64) -> CompileResult<()> {
    // Files and processes are safe from a program that runs as another user.
    if plan.identity.is_some() {
        return Ok(());
    }
    if plan.keeps_attributes {
        calls.extend(ATTRIBUTES.iter().chain(ATTRIBUTES_HERE));
    }
    if abi < ABI_WITH_TRUNCATE {
        // An access mode of 3 is neither reading nor writing, and truncates.
        calls.extend([libc::SYS_truncate, libc::SYS_openat2]);
        rules.insert(libc::SYS_openat, vec![rule([masked(2, libc::O_ACCMODE as u64)?])?]);
        #[cfg(target_arch = "x86_64")]
        rules.insert(libc::SYS_open, vec![rule([masked(1, libc::O_ACCMODE as u64)?])?]);
    }
    if abi < ABI_WITH_SCOPES {
        add_signals(calls, rules)?;
    }
    Ok(())
}

/// All ways to send a signal to another process: calls, and files whose owner the kernel tells of what comes. This
/// process becomes the program. Its children cannot be signalled either.
fn add_signals(calls: &mut Vec<i64>, rules: &mut Rules) -> CompileResult<()> {
    let own = std::process::id() as i32;
    for call in SIGNALS {
        rules.insert(call, vec![rule([unequal(0, own)?])?]);
    }
    calls.push(libc::SYS_pidfd_send_signal);
    for (call, requests) in [(libc::SYS_fcntl, SET_OWNER), (libc::SYS_ioctl, SET_OWNER_OF_SOCKET)] {
        for request in requests {
            rules.entry(call).or_default().push(rule([equal(1, request)?])?);
        }
    }
    Ok(())
}

/// Those that are refused whatever their arguments. Those that are not known here, and `clone3`, do not exist.
///
/// The filter is made by hand: the library compares a call with one after the other, and takes five instructions for
/// each. The kernel runs them for each call that there is when it installs a filter, which was a third of the cost of
/// the launcher. Here, a call is looked for among those of its group only.
fn refused_calls(mut calls: Vec<i64>) -> BpfProgram {
    calls.sort_unstable();
    let allowed = returns(libc::SECCOMP_RET_ALLOW);
    let refusal = returns(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    let head = [
        LOAD_CALL,
        jump(libc::BPF_JGE, FIRST_UNKNOWN, 1),
        jump_unless(libc::BPF_JEQ, libc::SYS_clone3, 1),
        returns(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ];
    let groups = calls.chunks(GROUP).flat_map(|group| {
        let size = group.len() as u8;
        let jumps = (1..).zip(group).map(|(at, call)| jump(libc::BPF_JEQ, *call, size + 1 - at));
        let over_the_group = jump(libc::BPF_JGT, group[group.len() - 1], size + 2);
        [over_the_group].into_iter().chain(jumps).chain([allowed.clone(), refusal.clone()]).collect::<Vec<_>>()
    });
    head.into_iter().chain(groups).chain([allowed.clone()]).collect()
}

/// About the root of their number.
const GROUP: usize = 8;

/// The first member of `struct seccomp_data`. The filters of the library look at the architecture.
const LOAD_CALL: sock_filter =
    sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: 0 };

/// Skips so many instructions if the call compares so with this number.
fn jump(comparison: u32, call: i64, over: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | comparison | libc::BPF_K) as u16, jt: over, jf: 0, k: call as u32 }
}

fn jump_unless(comparison: u32, call: i64, over: u8) -> sock_filter {
    let sock_filter { code, jt, jf, k } = jump(comparison, call, over);
    sock_filter { code, jt: jf, jf: jt, k }
}

fn jump_over(instructions: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | libc::BPF_JA) as u16, jt: 0, jf: 0, k: instructions }
}

fn returns(action: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: action }
}

/// Those that are refused with some arguments.
fn refused_arguments() -> CompileResult<Rules> {
    let mut rules = refused_to_all()?;
    // Anonymous shared memory is not counted for a process after it has marked it as not needed.
    let shared = rule([masked(3, (libc::MAP_ANONYMOUS | libc::MAP_SHARED) as u64)?])?;
    rules.insert(libc::SYS_mmap, vec![shared]);
    // The gateway waits where pages of memory that it shares are given back.
    rules.insert(libc::SYS_madvise, vec![rule([equal(2, libc::MADV_REMOVE)?])?]);
    rules.insert(libc::SYS_fallocate, vec![rule([masked(1, libc::FALLOC_FL_PUNCH_HOLE as u64)?])?]);
    Ok(rules)
}

/// Whether or not the program is one of ours.
fn refused_to_all() -> CompileResult<Rules> {
    let mut rules = Rules::new();
    let clone = CLONE_NEW.map(|flag| rule([masked(0, flag as u64)?])).into_iter().collect::<CompileResult<_>>()?;
    rules.insert(libc::SYS_clone, clone);
    // Clearing the parent death signal.
    let pdeathsig = rule([equal(0, libc::PR_SET_PDEATHSIG)?, unequal(1, libc::SIGKILL)?])?;
    rules.insert(libc::SYS_prctl, vec![pdeathsig]);
    // 0 is the process itself.
    for call in OF_A_PROCESS {
        rules.insert(call, vec![rule([unequal(0, 0)?])?]);
    }
    for (call, a_process) in OF_SOMEBODY {
        rules.insert(call, vec![rule([unequal(0, a_process)?])?, rule([unequal(1, 0)?])?]);
    }
    Ok(rules)
}

fn unused_families() -> CompileResult<Rules> {
    let others = FAMILIES.map(|family| unequal(0, family)).into_iter().collect::<CompileResult<Vec<_>>>()?;
    let rules = vec![SeccompRule::new(others)?];
    Ok(Rules::from([(libc::SYS_socket, rules.clone()), (libc::SYS_socketpair, rules)]))
}

fn network_families() -> CompileResult<Rules> {
    let rules: Vec<_> =
        NETWORK_FAMILIES.map(|family| rule([equal(0, family)?])).into_iter().collect::<CompileResult<_>>()?;
    Ok(Rules::from([(libc::SYS_socket, rules.clone()), (libc::SYS_socketpair, rules)]))
}

fn refused(rules: Rules, errno: i32) -> CompileResult<BpfProgram> {
    compile(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32))
}

fn compile(rules: Rules, otherwise: SeccompAction, matching: SeccompAction) -> CompileResult<BpfProgram> {
    SeccompFilter::new(rules, otherwise, matching, ARCHITECTURE)?.try_into()
}

fn rule<const N: usize>(conditions: [SeccompCondition; N]) -> CompileResult<SeccompRule> {
    SeccompRule::new(conditions.into())
}

fn equal(argument: u8, value: i32) -> CompileResult<SeccompCondition> {
    condition(argument, SeccompCmpOp::Eq, value as u64)
}

fn unequal(argument: u8, value: i32) -> CompileResult<SeccompCondition> {
    condition(argument, SeccompCmpOp::Ne, value as u64)
}

/// All of these bits are set.
fn masked(argument: u8, bits: u64) -> CompileResult<SeccompCondition> {
    condition(argument, SeccompCmpOp::MaskedEq(bits), bits)
}

/// The lower half of an argument is enough for flags, options and families.
fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> CompileResult<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

#[cfg(test)]
mod tests;
