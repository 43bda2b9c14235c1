use super::*;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;

/// Where Landlock does not yet decide on signals.
#[test]
fn signals_reach_no_other_process() {
    let free = thread::spawn(signals).join().unwrap();
    assert!(free.iter().all(|(_, refused)| !refused), "{free:?}");
    // A filter is that of a thread.
    let confined = thread::spawn(|| {
        let (mut calls, mut rules) = (Vec::new(), Rules::new());
        add_signals(&mut calls, &mut rules).unwrap();
        apply_filter(&in_a_row(vec![refused(rules, libc::EPERM).unwrap(), refused_calls(calls)])).unwrap();
        // SAFETY: signal 0 is none.
        assert_eq!(unsafe { libc::kill(libc::getpid(), 0) }, 0);
        signals()
    });
    let confined = confined.join().unwrap();
    assert!(confined.iter().all(|(_, refused)| *refused), "{confined:?}");
}

/// Tries to signal the process that has started this one, in all ways, with no signal. Which are refused?
fn signals() -> Vec<(&'static str, bool)> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let file = socket.as_raw_fd();
    // SAFETY: these have no effect, and what they point to lives longer.
    unsafe {
        let other = libc::getppid();
        let mut info: libc::siginfo_t = std::mem::zeroed();
        // The kernel lets nobody else say that a signal is its own.
        info.si_code = libc::SI_QUEUE;
        let pidfd = libc::syscall(libc::SYS_pidfd_open, other, 0);
        let owner = [1, other];
        let results = [
            ("kill", libc::syscall(libc::SYS_kill, other, 0)),
            ("tkill", libc::syscall(libc::SYS_tkill, other, 0)),
            ("tgkill", libc::syscall(libc::SYS_tgkill, other, other, 0)),
            ("rt_sigqueueinfo", libc::syscall(libc::SYS_rt_sigqueueinfo, other, 0, &info)),
            ("rt_tgsigqueueinfo", libc::syscall(libc::SYS_rt_tgsigqueueinfo, other, other, 0, &info)),
            ("pidfd_send_signal", libc::syscall(libc::SYS_pidfd_send_signal, pidfd, 0, 0, 0)),
            ("F_SETOWN", libc::syscall(libc::SYS_fcntl, file, libc::F_SETOWN, other)),
            ("F_SETOWN_EX", libc::syscall(libc::SYS_fcntl, file, 15, &owner)),
            ("FIOSETOWN", libc::syscall(libc::SYS_ioctl, file, 0x8901, &other)),
            ("SIOCSPGRP", libc::syscall(libc::SYS_ioctl, file, 0x8902, &other)),
        ];
        libc::close(pidfd as i32);
        results.into_iter().map(|(name, result)| (name, result == -1)).collect()
    }
}

#[test]
fn a_program_of_the_product_makes_no_processes_and_only_the_sockets_that_it_needs() {
    for sockets in [Sockets::Unix, Sockets::Internet] {
        let filtered = thread::spawn(move || {
            apply_filter(&in_a_row(programs_for_own(sockets).unwrap())).unwrap();
            assert!(thread::spawn(|| true).join().unwrap());
            assert!(UnixStream::pair().is_ok());
            // SAFETY: what it would start is a process that ends at once.
            let forked = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
            if forked == 0 {
                // SAFETY: as SIGKILL, it runs nothing more of this process.
                unsafe { libc::_exit(0) };
            }
            assert_eq!(forked, -1);
            // SAFETY: takes a string of C and numbers.
            assert!(unsafe { libc::memfd_create(c"memory".as_ptr(), 0) } >= 0);
            UdpSocket::bind("127.0.0.1:0").map(drop).map_err(|error| error.raw_os_error())
        });
        let expected = if sockets == Sockets::Unix { Err(Some(libc::EAFNOSUPPORT)) } else { Ok(()) };
        assert_eq!(filtered.join().unwrap(), expected);
    }
}
