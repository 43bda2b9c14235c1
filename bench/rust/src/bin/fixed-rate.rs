//! Sends GET requests at a fixed rate: `fixed-rate <host:port> <path> <connections> <requests/s> <seconds>`. Prints p50
//! and p99 in ms. A latency is counted from the moment at which the request was due, not from when it was sent, so that
//! a server that stalls does not hide the requests that had to wait (coordinated omission).
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep_until};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, connections, rate, seconds] = &arguments[..] else {
        panic!("fixed-rate <host:port> <path> <connections> <requests/s> <seconds>");
    };
    let number = |text: &str| text.parse::<u32>().unwrap_or_else(|error| panic!("{text}: {error}"));
    let (connections, rate, seconds) = (number(connections), number(rate), number(seconds));
    let each = Duration::from_secs(1) * connections / rate;
    let count = rate * seconds / connections;
    let mut latencies = LocalSet::new()
        .run_until(async {
            let begin = Instant::now() + Duration::from_millis(100);
            let run = |at: u32| send(address.clone(), path.clone(), begin + each * at / connections, each, count);
            let tasks: Vec<_> = (0..connections).map(|at| spawn_local(run(at))).collect();
            let mut all = Vec::new();
            for task in tasks {
                all.extend(task.await.expect("a connection that works"));
            }
            all
        })
        .await;
    latencies.sort();
    let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("{} {}", at(0.5), at(0.99));
}

/// Sends requests on one connection, one at a time: the first one at `due`, and then one after each `every`.
async fn send(address: String, path: String, first: Instant, every: Duration, count: u32) -> Vec<Duration> {
    let mut connection = TcpStream::connect(&address).await.expect("a server");
    connection.set_nodelay(true).expect("a socket");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut buffer = vec![0; 64 * 1024];
    let mut latencies = Vec::with_capacity(count as usize);
    for number in 0..count {
        let due = first + every * number;
        sleep_until(due).await;
        connection.write_all(request.as_bytes()).await.expect("a request");
        let mut received = 0;
        while !is_complete(&buffer[..received]) {
            let read = connection.read(&mut buffer[received..]).await.expect("a response");
            assert!(read > 0, "the server closed the connection");
            received += read;
        }
        assert!(buffer.starts_with(b"HTTP/1.1 200 "), "the answer is no success");
        latencies.push(due.elapsed());
    }
    latencies
}

/// Whether this is a whole response with a Content-Length.
fn is_complete(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let is_length = |line: &&str| line.get(..15).is_some_and(|name| name.eq_ignore_ascii_case("content-length:"));
    let length = head.lines().find(is_length).and_then(|line| line[15..].trim().parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}
