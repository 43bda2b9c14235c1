//! The gateway's side, as small as it can be.

use rust_edge_gateway_sdk::wire::buffer::Buffer;
use rust_edge_gateway_sdk::wire::frame::{credit, header, memory, Kind, MEMORY_BYTES};
use serde_json::{json, Value};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Long enough for the slowest machine: only a test that would never end runs into it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A handler process. Killed when dropped.
pub struct Handler {
    child: Child,
    control: Option<UnixStream>,
    folder: PathBuf,
}

impl Handler {
    pub fn start(program: &str) -> Self {
        Self::start_with(program, &[])
    }

    pub fn start_with(program: &str, environment: &[(&str, &str)]) -> Self {
        Self::start_that_takes(program, "ready\n", environment)
    }

    /// One that writes this when it is ready.
    pub fn start_that_takes(program: &str, ready_line: &str, environment: &[(&str, &str)]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("edge-sdk-test-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (mut control, theirs) = UnixStream::pair().unwrap();
        let child = Command::new(program_path(program))
            .env_clear()
            .env("EDGE_SOCKET", folder.join("socket"))
            // The descriptor number is the gateway's choice; standard input is the one that Rust can pass.
            .env("EDGE_CONTROL_FD", "0")
            .envs(environment.iter().copied())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        control.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut ready = vec![0; ready_line.len()];
        control.read_exact(&mut ready).unwrap();
        assert_eq!(ready, ready_line.as_bytes());
        Handler { child, control: Some(control), folder }
    }

    pub fn run_without_environment(program: &str) -> (Option<i32>, String) {
        let output = Command::new(program_path(program)).env_clear().output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    pub fn connect(&self) -> Connection {
        let stream = UnixStream::connect(self.folder.join("socket")).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Connection { stream, received: Buffer::new() }
    }

    /// Ends the process as the gateway does; its exit code.
    pub fn close_control(&mut self) -> Option<i32> {
        self.control = None;
        self.child.wait().unwrap().code()
    }

    /// Ends the process; what it wrote to stderr.
    pub fn stop(mut self) -> String {
        assert_eq!(self.close_control(), Some(0));
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // Both fail when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// A cargo example beside this test's executable: target/debug/deps/process-<hash> and target/debug/examples/<program>.
fn program_path(program: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("examples").join(program);
    assert!(path.exists(), "{} is missing: `cargo build --examples` with the same features", path.display());
    path
}

/// A response.
pub struct Answer {
    pub number: u32,
    pub status: u64,
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

/// A connection to a handler.
pub struct Connection {
    stream: UnixStream,
    received: Buffer,
}

impl Connection {
    /// A GET request, or a POST if there is a body; its id is `id-<number>`.
    pub fn frame(number: u32, target: &str, body: &[u8]) -> Vec<u8> {
        let head = json!({
            "method": if body.is_empty() { "GET" } else { "POST" },
            "target": target,
            "headers": ["Host", "localhost"],
            "params": {},
            "client_ip": "127.0.0.1",
            "request_id": format!("id-{number}"),
            "deadline_ms": 30000,
        });
        Self::raw_frame(1, number, head.to_string().as_bytes(), body)
    }

    pub fn raw_frame(kind: u8, number: u32, head: &[u8], body: &[u8]) -> Vec<u8> {
        let kind = if kind == 1 { Kind::Request } else { Kind::Response };
        [&header(kind, number, head.len(), body.len()), head, body].concat()
    }

    pub fn send(&mut self, number: u32, target: &str, body: &[u8]) {
        self.send_raw(&Self::frame(number, target, body));
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn receive(&mut self) -> Answer {
        loop {
            if let Some(frame) = self.received.next_frame().unwrap() {
                assert_eq!(frame.kind, Kind::Response);
                let head: Value = serde_json::from_slice(frame.head).unwrap();
                return Answer {
                    number: frame.number,
                    status: head["status"].as_u64().unwrap(),
                    headers: serde_json::from_value(head["headers"].clone()).unwrap(),
                    body: frame.body.to_vec(),
                };
            }
            self.read();
        }
    }

    /// The next frame, whatever it is: its kind, its number, its head and its body.
    pub fn receive_frame(&mut self) -> (Kind, u32, Vec<u8>, Vec<u8>) {
        loop {
            if let Some(frame) = self.received.next_frame().unwrap() {
                return (frame.kind, frame.number, frame.head.to_vec(), frame.body.to_vec());
            }
            self.read();
        }
    }

    fn read(&mut self) {
        match self.stream.read(self.received.room()) {
            Ok(0) => panic!("the handler closed the connection"),
            Ok(n) => self.received.filled(n),
            // Reading with a time limit is not resumed after the process was stopped (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("no frame in time: {error}"),
        }
    }

    pub fn give_credit(&mut self, number: u32, bytes: u32) {
        self.send_raw(&credit(number, bytes));
    }

    /// Gives streams memory, by their numbers, all at once; the last one for the first time if there is a descriptor.
    pub fn give_memory(&mut self, streams: &[(u32, u32)], file: Option<&File>) {
        let frames = streams.iter().map(|&(number, which)| memory(number, which, MEMORY_BYTES as u32));
        let frame: Vec<u8> = frames.flatten().collect();
        let Some(file) = file else { return self.send_raw(&frame) };
        let mut control = [0_usize; 8];
        let mut slice = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        // SAFETY: all fields may be zero, there is room for one descriptor, and all lives until the call returns.
        let sent = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            (message.msg_iov, message.msg_iovlen) = (&mut slice, 1);
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(4) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            ((*header).cmsg_level, (*header).cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
            (*header).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(header).cast::<i32>().write_unaligned(file.as_raw_fd());
            libc::sendmsg(self.stream.as_raw_fd(), &message, 0)
        };
        assert_eq!(sent as usize, frame.len());
    }

    pub fn reset(&mut self, number: u32) {
        self.send_raw(&header(Kind::Reset, number, 0, 0));
    }

    /// Whether the handler closes the connection, having sent nothing more.
    pub fn is_closed(&mut self) -> bool {
        // A reset counts: bytes that the handler never read make one of a close.
        self.stream
            .read(&mut [0; 1])
            .map_or_else(|error| error.kind() == std::io::ErrorKind::ConnectionReset, |n| n == 0)
    }
}
