//! A front that runs: the program itself, started as the supervisor of a gateway starts it.
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, thread};

use serde_json::{Value, json};

use super::endpoint::TEXTS;
use super::supervisor::Supervisor;
use super::{Answer, Client, Endpoint, Frames, Handler, Http2, Request, Response, Stream, eventually};

/// The descriptors by which the front knows its channel and its socket.
const CHANNEL: RawFd = 3;
const LISTENING_SOCKET: RawFd = 4;

/// Ends with the test, which fails if the front has ended by itself, or has logged what the test did not expect.
pub struct Front {
    process: Process,
    pub supervisor: Supervisor,
    pub address: SocketAddr,
    /// Has the sockets of handlers.
    folder: PathBuf,
}

impl Front {
    pub fn start() -> Self {
        Self::with(json!({}))
    }

    /// Starts one with some settings that are not those of a gateway by default.
    pub fn with(settings: Value) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("edge-front-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let socket = bound_socket().unwrap();
        let address = socket.local_addr().unwrap();
        let (channel, other_end) = UnixStream::pair().unwrap();
        let process = Process::start(&other_end, &socket).unwrap();
        let supervisor = Supervisor::new(channel);
        supervisor.send(&configure(settings));
        assert_eq!(supervisor.request(json!({ "type": "listen" }))["error"], Value::Null);
        Self { process, supervisor, address, folder }
    }

    /// Starts a handler that answers each request by this function, and takes whole requests only.
    pub fn handler(&self, answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Handler {
        Handler::new(&self.folder, "whole", move |frames| frames.answer_all(&answer))
    }

    /// Starts a handler that does this on each connection of the front to it. `takes` is what it takes besides whole
    /// requests: nothing ("whole"), "streams", or "websockets" as well.
    pub fn scripted(&self, takes: &'static str, script: impl Fn(&mut Frames) + Send + Sync + 'static) -> Handler {
        Handler::new(&self.folder, takes, script)
    }

    /// Starts a handler that runs this for each request, and answers piece by piece. `takes` as above.
    pub fn streams(
        &self,
        takes: &'static str,
        script: impl Fn(&Request, &mut Stream) + Send + Sync + 'static,
    ) -> Handler {
        Handler::new(&self.folder, takes, move |frames| frames.stream_all(&script))
    }

    /// Has a handler serve endpoints, instead of what has served them. Returns when all requests go there.
    pub fn serve<const COUNT: usize>(&self, handler: &Handler, endpoints: [Endpoint; COUNT]) {
        self.apply(endpoints.map(|endpoint| endpoint.served_by(handler)));
    }

    /// Sends the front the states of endpoints. Returns when all requests go accordingly.
    pub fn apply<const COUNT: usize>(&self, states: [Value; COUNT]) {
        self.apply_with(json!({}), states);
    }

    /// The same, with texts of policies that these or other endpoints name.
    pub fn apply_with(&self, mut policies: Value, states: impl IntoIterator<Item = Value>) {
        let without_texts = |mut state: Value| {
            if let Some(Value::Object(texts)) = state.as_object_mut().unwrap().remove(TEXTS) {
                policies.as_object_mut().unwrap().extend(texts);
            }
            state
        };
        let upserts: Vec<_> = states.into_iter().map(without_texts).collect();
        let message = json!({ "type": "apply", "upserts": upserts, "removals": [], "policies": policies });
        self.supervisor.request(message);
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    pub fn connect_http2(&self) -> Http2 {
        Http2::connect(self.address, &[])
    }

    /// Sends bytes on a connection of their own, and waits for one response.
    pub fn exchange(&self, bytes: impl AsRef<[u8]>) -> Response {
        self.connect().send(bytes).response()
    }

    /// GET of a path, with header lines.
    pub fn get(&self, path: &str, lines: &str) -> Response {
        self.exchange(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"))
    }

    /// POST of a body to a path, with header lines.
    pub fn post(&self, path: &str, lines: &str, body: impl AsRef<[u8]>) -> Response {
        let body = body.as_ref();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: {}\r\n\r\n", body.len());
        self.exchange([head.as_bytes(), body].concat())
    }

    pub fn metrics(&self) -> Value {
        self.supervisor.request(json!({ "type": "metrics" }))["metrics"].take()
    }

    /// Waits until the figures of the front are as they should be.
    pub fn metrics_become(&self, what: &str, condition: impl Fn(&Value) -> bool) {
        eventually(|| format!("not {what}: {}", self.metrics()), || condition(&self.metrics()));
    }

    /// Bytes of memory that the process has.
    pub fn memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    /// Waits until the process has less memory than this.
    pub fn memory_falls_below(&self, bytes: usize) {
        eventually(|| format!("memory is {}", self.memory()), || self.memory() < bytes);
    }

    /// Waits until the front has logged this, and returns the fields of the line.
    pub fn logged(&self, message: &str) -> Value {
        let matches = |report: &Value| report["type"] == "log" && report["message"] == message;
        self.supervisor.report(&format!("the log line {message:?}"), matches)["fields"].take()
    }

    /// The log lines that nobody has asked for.
    fn unexpected_lines(&self) -> Vec<Value> {
        // What was logged is there when all threads have answered.
        self.apply([]);
        self.supervisor.reports(|report| report["type"] == "log")
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let was_alive = self.process.is_alive();
        // A test that has failed says itself what was wrong.
        let lines = if was_alive && !thread::panicking() { self.unexpected_lines() } else { Vec::new() };
        let said = self.process.end();
        let _ = fs::remove_dir_all(&self.folder);
        if thread::panicking() {
            eprintln!("the front has said: {said:?}");
            return;
        }
        assert!(was_alive, "the front has ended: {said}");
        assert_eq!(said, "");
        assert!(lines.is_empty(), "the front has logged {lines:?}");
    }
}

/// The process is killed with the test, however that ends.
struct Process(Child);

impl Process {
    fn start(channel: &UnixStream, socket: &TcpListener) -> io::Result<Self> {
        // Neither is one of those that the front expects.
        let (channel, socket) = (duplicate(channel)?, duplicate(socket)?);
        let (channel_fd, socket_fd) = (channel.as_raw_fd(), socket.as_raw_fd());
        let mut command = Command::new(env!("CARGO_BIN_EXE_edge-front"));
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // `npm run test:shaken` has the front pause at random; this process does not, as it is no part of the product.
        if let Some(library) = env::var_os("SHAKE_LIBRARY") {
            command.env("LD_PRELOAD", library);
            command.envs(env::var_os("SHAKE_SEED").map(|seed| ("SHAKE_SEED", seed)));
        }
        // SAFETY: both calls may be made between fork and exec, and take numbers only.
        unsafe {
            command.pre_exec(move || {
                for (from, to) in [(channel_fd, CHANNEL), (socket_fd, LISTENING_SOCKET)] {
                    if libc::dup2(from, to) < 0 {
                        return Err(io::Error::last_os_error());
                    }
                }
                Ok(())
            });
        }
        command.spawn().map(Self)
    }

    fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Ends it, and returns what it has written to its standard error.
    fn end(&mut self) -> String {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let mut said = String::new();
        self.0.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
        said
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// A socket that is bound and does not listen: the front does that itself.
fn bound_socket() -> io::Result<TcpListener> {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be() },
        sin_zero: [0; 8],
    };
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: takes numbers only; a descriptor that is returned is open, and nobody else knows it.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: the address lives until the call returns, and has this length.
    if unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket.into())
}

fn duplicate(descriptor: &impl AsRawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only; a descriptor that is returned is open, and nobody else knows it.
    unsafe {
        let fd = libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LISTENING_SOCKET + 1);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// The first message. The settings are the defaults of a gateway (`docs/CONFIGURATION.md`), but for those given.
fn configure(settings: Value) -> Value {
    let mut message = json!({
        "type": "configure",
        "threads": 2,
        "bodyLimit": 10 << 20,
        "memoryBytes": 256 << 20,
        "policyMemoryBytes": 64 << 20,
        "connectionsLimit": 10_000,
        "headTimeoutMs": 20_000,
        "idleTimeoutMs": 75_000,
        "stallTimeoutMs": 20_000,
        "minBytesPerSecond": 1024,
        "streamDrainMs": 30_000,
        "trustedProxies": [],
        "logsRequests": true,
        "logRequestsPerSecond": 1_000_000,
        "figuresEverySeconds": 5,
        "sharesRates": false,
        "rateSeed": "a seed",
        "traces": null,
        "redirectPort": null,
        "strictTransportSeconds": 0,
    });
    for (name, value) in settings.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
}
