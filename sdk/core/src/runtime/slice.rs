//! Short turns on the CPU.
//!
//! A thread that runs on and on is looked at when its turn is over, and turns are counted in ticks of the kernel's timer,
//! which come every 4 ms on many machines: for so long a request waits behind the handler of somebody else. A thread that
//! asks for short turns goes ahead of one with longer turns when it wakes up, and lets others go ahead sooner; how much
//! of the CPU it gets stays the same.

/// The shortest that the kernel grants, nanoseconds (sched(7), `sched_setattr(2)`; Linux 6.12 and later).
#[cfg(target_os = "linux")]
const SHORTEST_NS: u64 = 100_000;

/// Asks for short turns for this thread and those it starts from now on. Kernels that do not know of this change nothing.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn shorten() {
    use std::os::raw::{c_int, c_long, c_uint};
    #[cfg(target_arch = "x86_64")]
    const SCHED_SETATTR: c_long = 314;
    #[cfg(target_arch = "aarch64")]
    const SCHED_SETATTR: c_long = 274;
    const PRIO_PROCESS: c_int = 0;

    /// `struct sched_attr` of linux/sched/types.h, in its first version.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
        fn getpriority(which: c_int, who: c_uint) -> c_int;
    }
    let attributes = Attributes {
        size: std::mem::size_of::<Attributes>() as u32,
        policy: 0,
        flags: 0,
        // SAFETY: takes two numbers and returns one.
        nice: unsafe { getpriority(PRIO_PROCESS, 0) },
        priority: 0,
        runtime: SHORTEST_NS,
        deadline: 0,
        period: 0,
    };
    let (this_thread, no_flags): (c_int, c_uint) = (0, 0);
    // SAFETY: the kernel reads `size` bytes of the structure, which outlives the call, and writes nothing.
    unsafe { syscall(SCHED_SETATTR, this_thread, &raw const attributes, no_flags) };
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub fn shorten() {}
