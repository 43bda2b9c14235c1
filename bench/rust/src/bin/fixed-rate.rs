//! Load at a fixed rate. Each request is planned for an instant, and its latency counts from there, not from when a
//! connection was free to send it: a server that stalls for a moment delays all requests planned in that moment.
//!
//! `fixed-rate <host:port> <path> <connections> <requests/s> <seconds>` prints p50 and p99 in milliseconds.
//!
//! It does not use tokio, whose timers have a resolution of a millisecond: they would send requests in bursts, up to a
//! millisecond late, which is more than a request takes.
use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

/// Requests that are planned in this time are not counted.
const WARM_UP: Duration = Duration::from_millis(500);
/// What is not answered so long after the last planned request is a failure.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection with at most one request on its way.
struct Connection {
    stream: TcpStream,
    /// When the request was planned that is on its way.
    planned: Instant,
    received: Vec<u8>,
}

/// The instants of all requests, evenly spread.
struct Plan {
    start: Instant,
    rate: f64,
    requests: usize,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, connections, rate, seconds] = args.as_slice() else {
        return Err(Error::other("fixed-rate <host:port> <path> <connections> <requests/s> <seconds>"));
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut connections: Vec<Connection> =
        (0..number(connections)? as usize).map(|_| Connection::open(address)).collect::<Result<_>>()?;
    let rate = number(rate)?;
    let duration = WARM_UP + Duration::from_secs_f64(number(seconds)?);
    let requests = (rate * duration.as_secs_f64()) as usize;
    let plan = Plan { start: Instant::now(), rate, requests };
    let mut latencies = run(&plan, &mut connections, request.as_bytes())?;
    latencies.sort_unstable();
    let percentile = |share: f64| latencies[(latencies.len() as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("{} {}", percentile(0.5), percentile(0.99));
    Ok(())
}

fn number(text: &str) -> Result<f64> {
    text.parse().map_err(|_| Error::other(format!("{text} is no number")))
}

/// Sends everything that is planned; the latencies of what counts.
fn run(plan: &Plan, connections: &mut [Connection], request: &[u8]) -> Result<Vec<Duration>> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (at, connection) in connections.iter().enumerate() {
        epoll::add(&epoll, &connection.stream, EventData::new_u64(at as u64), EventFlags::IN)?;
    }
    let mut idle: VecDeque<usize> = (0..connections.len()).collect();
    let (mut sent, mut answered) = (0, 0);
    let mut latencies = Vec::with_capacity(plan.requests);
    let mut events: Vec<Event> = Vec::with_capacity(connections.len());
    while answered < plan.requests {
        while sent < plan.requests && plan.at(sent) <= Instant::now() {
            let Some(at) = idle.pop_front() else { break };
            connections[at].send(request, plan.at(sent))?;
            sent += 1;
        }
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&plan.wait(sent, idle.is_empty())?))?;
        for event in events.drain(..) {
            let at = event.data.u64() as usize;
            if !connections[at].receive()? {
                continue;
            }
            answered += 1;
            idle.push_back(at);
            let planned = connections[at].planned;
            if planned >= plan.start + WARM_UP {
                latencies.push(planned.elapsed());
            }
        }
    }
    Ok(latencies)
}

impl Plan {
    fn at(&self, request: usize) -> Instant {
        self.start + Duration::from_secs_f64(request as f64 / self.rate)
    }

    /// How long to wait for answers before the next request has to be sent; `busy`: no connection could send it.
    fn wait(&self, next: usize, busy: bool) -> Result<Timespec> {
        let now = Instant::now();
        let end = self.at(self.requests) + PATIENCE;
        if now >= end {
            return Err(Error::new(ErrorKind::TimedOut, "the server does not keep up with the rate"));
        }
        let until = if busy || next == self.requests { end } else { self.at(next) };
        Timespec::try_from(until.saturating_duration_since(now)).map_err(Error::other)
    }
}

impl Connection {
    fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, planned: Instant::now(), received: Vec::with_capacity(4096) })
    }

    fn send(&mut self, request: &[u8], planned: Instant) -> Result<()> {
        self.planned = planned;
        self.received.clear();
        // It is short, and nothing else is on its way: the socket takes all of it.
        self.stream.write_all(request)
    }

    /// Reads what has arrived; true when the answer is complete.
    fn receive(&mut self) -> Result<bool> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.received.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        let Some(head) = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            return Ok(false);
        };
        let head_text = String::from_utf8_lossy(&self.received[..head]).to_ascii_lowercase();
        if !head_text.starts_with("http/1.1 200 ") {
            return Err(Error::other(format!("the server answers {head_text}")));
        }
        let length = head_text.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| Error::other(format!("the answer has no length: {head_text}")))?;
        Ok(self.received.len() >= head + 4 + length)
    }
}
