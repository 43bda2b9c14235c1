//! A client of HTTP/1 that sends any bytes, and reads what comes back.
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use serde_json::Value;

use super::{PATIENCE, eventually, read_some};

pub struct Client {
    pub stream: TcpStream,
    /// What has come and was not read by the test.
    pub received: Vec<u8>,
    /// The front has ended the connection with a reset.
    pub is_reset: bool,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// The headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).unwrap())
    }

    /// One end of a connection that may have another one, for a thread that sends while another one receives.
    pub fn of(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, received: Vec::new(), is_reset: false }
    }

    /// The front may have closed the connection meanwhile, because of what came before.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Waits until the front, on this machine, has read all that was sent.
    pub fn until_read(&mut self) -> &mut Self {
        let port = |address: SocketAddr| format!(":{:04X}", address.port());
        let (own, other) = (port(self.stream.local_addr().unwrap()), port(self.stream.peer_addr().unwrap()));
        let is_read = || {
            let table = fs::read_to_string("/proc/net/tcp").unwrap();
            let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            // Each end has a row: its address, the other one, and what waits to be sent and to be read.
            rows.filter(|row| match (row[1], row[2], row[4].split_once(':')) {
                (local, peer, Some((unsent, _))) if local.ends_with(&own) && peer.ends_with(&other) => is_zero(unsent),
                (local, peer, Some((_, unread))) if local.ends_with(&other) && peer.ends_with(&own) => is_zero(unread),
                _ => false,
            })
            .count()
                == 2
        };
        eventually(|| "the front does not read".to_owned(), is_read);
        self
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        let length = size_of_val(&linger) as libc::socklen_t;
        let option = (&raw const linger).cast();
        // SAFETY: the option lives until the call returns, and has this length.
        let code =
            unsafe { libc::setsockopt(self.stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, option, length) };
        assert_eq!(code, 0);
    }

    /// Sends no more.
    pub fn finish(&mut self) -> &mut Self {
        let _ = self.stream.shutdown(Shutdown::Write);
        self
    }

    /// The next response, once all of it is there.
    pub fn response(&mut self) -> Response {
        self.next_response(true)
    }

    /// The next response, which is one to HEAD: it has no body, whatever its headers say.
    pub fn response_to_head(&mut self) -> Response {
        self.next_response(false)
    }

    pub fn responses(&mut self, count: usize) -> Vec<Response> {
        (0..count).map(|_| self.response()).collect()
    }

    /// All that come until the front closes the connection.
    pub fn rest(&mut self) -> Vec<Response> {
        let mut responses = Vec::new();
        loop {
            if let Some(response) = self.take_response(true) {
                responses.push(response);
            } else if !self.read() {
                assert!(self.received.is_empty(), "not a response: {}", self.excerpt());
                return responses;
            }
        }
    }

    /// Waits until this has come.
    pub fn receives(&mut self, text: &str) -> &mut Self {
        while memchr::memmem::find(&self.received, text.as_bytes()).is_none() {
            assert!(self.read(), "no {text:?}, but {}", self.excerpt());
        }
        self
    }

    /// Waits until the front has closed the connection, and returns what came before that.
    pub fn closed(&mut self) -> String {
        while self.read() {}
        String::from_utf8_lossy(&self.received).into_owned()
    }

    fn next_response(&mut self, has_body: bool) -> Response {
        loop {
            if let Some(response) = self.take_response(has_body) {
                return response;
            }
            assert!(self.read(), "no response, but {}", self.excerpt());
        }
    }

    /// Takes the next response out of what has come, without those that are not final.
    fn take_response(&mut self, has_body: bool) -> Option<Response> {
        loop {
            let (response, length) = parse(&self.received, has_body)?;
            self.received.drain(..length);
            if response.status >= 200 {
                return Some(response);
            }
        }
    }

    /// Reads more; false when the front has closed the connection.
    pub fn read(&mut self) -> bool {
        let mut piece = [0; 64 * 1024];
        let length = match read_some(&mut self.stream, &mut piece) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                self.is_reset = true;
                0
            }
            Err(error) => panic!("{error}; so far: {}", self.excerpt()),
        };
        self.received.extend_from_slice(&piece[..length]);
        length > 0
    }

    /// Whether the front has not ended the connection yet. Reads what is there.
    pub fn is_open(&mut self) -> bool {
        let mut piece = [0; 64 * 1024];
        self.stream.set_nonblocking(true).unwrap();
        let is_open = loop {
            match self.stream.read(&mut piece) {
                Ok(0) => break false,
                Ok(length) => self.received.extend_from_slice(&piece[..length]),
                Err(error) => break error.kind() == ErrorKind::WouldBlock,
            }
        };
        self.stream.set_nonblocking(false).unwrap();
        is_open
    }

    /// The beginning of what has come and was not read, for messages.
    pub fn excerpt(&self) -> String {
        format!("{:?}", String::from_utf8_lossy(&self.received[..self.received.len().min(2_000)]))
    }
}

impl Response {
    /// The value of a header, by its name in lower case. Several of the name are joined.
    pub fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> =
            self.headers.iter().filter(|(one, _)| one == name).map(|(_, value)| value.as_str()).collect();
        if values.is_empty() { None } else { Some(values.join(", ")) }
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {:?}", self.text()))
    }

    /// The text of an error of the front.
    pub fn error(&self) -> String {
        let json = self.json();
        assert_eq!(json.as_object().unwrap().len(), 1, "{json}");
        json["error"].as_str().unwrap().to_owned()
    }
}

fn is_zero(hexadecimal: &str) -> bool {
    hexadecimal.bytes().all(|digit| digit == b'0')
}

/// The response at the beginning of the bytes, and its length; `None` if it is not there as a whole.
fn parse(bytes: &[u8], has_body: bool) -> Option<(Response, usize)> {
    let head_length = memchr::memmem::find(bytes, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..head_length]);
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap();
    let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status = status.unwrap_or_else(|| panic!("not a response: {first:?}"));
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect();
    let mut response = Response { status, headers, body: Vec::new() };
    let mut length = head_length;
    if !has_body {
        return Some((response, length));
    }
    if response.header("transfer-encoding").as_deref() == Some("chunked") {
        loop {
            let line = memchr::memmem::find(&bytes[length..], b"\r\n")?;
            let digits = std::str::from_utf8(&bytes[length..length + line]).unwrap();
            let size = usize::from_str_radix(digits, 16).unwrap();
            let start = length + line + 2;
            response.body.extend_from_slice(bytes.get(start..start + size)?);
            length = start + size + 2;
            if bytes.len() < length {
                return None;
            }
            if size == 0 {
                return Some((response, length));
            }
        }
    }
    let body_length = response.header("content-length").map_or(0, |value| value.parse().unwrap());
    response.body = bytes.get(length..length + body_length)?.to_vec();
    length += body_length;
    Some((response, length))
}
