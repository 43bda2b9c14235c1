use super::*;
use serde_json::json;
use std::io::{Read, Write};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::thread;

const TIMEOUT: Duration = Duration::from_secs(20);

fn request(number: u32) -> Vec<u8> {
    let head = json!({
        "method": "GET",
        "target": "/",
        "headers": [],
        "params": {},
        "client_ip": "127.0.0.1",
        "request_id": "",
        "deadline_ms": 30000,
    })
    .to_string();
    [&header(Kind::Request, number, head.len(), 0), head.as_bytes()].concat()
}

#[test]
fn a_request_that_is_set_aside_is_not_left_to_a_thread_that_waits_for_the_right_to_read() {
    let (stream, mut gateway) = UnixStream::pair().unwrap();
    gateway.set_read_timeout(Some(TIMEOUT)).unwrap();
    // There is no room for an answer, so that the thread that writes it stops where this test wants it to.
    stream.set_nonblocking(true).unwrap();
    let mut filled = 0;
    while let Ok(n) = (&stream).write(&[0; 4096]) {
        filled += n;
    }
    stream.set_nonblocking(false).unwrap();
    let connection = Arc::new(GatewayConnection::new(stream, Takes::Whole));
    // One thread waits for something else, and reads.
    let waiter = thread::spawn({
        let connection = connection.clone();
        move || connection.read_aside(|| true)
    });
    while !connection.has_reader() {
        thread::yield_now();
    }
    // Another one may not read, and writes what it has answered before it looks further.
    connection.answer(1, Response::ok(()), false);
    let (tell, told) = channel();
    thread::spawn({
        let connection = connection.clone();
        move || tell.send(connection.next().map(|asked| asked.number))
    });
    while connection.answers.try_lock().is_ok() {
        thread::yield_now();
    }
    // The first one sets a request aside, and reads again, as there is no next reader yet.
    gateway.write_all(&request(2)).unwrap();
    assert_eq!(waiter.join().unwrap(), Some(true));
    assert!(!connection.is_read());
    let reading = connection.try_received();
    assert!(reading.is_some());
    gateway.read_exact(&mut vec![0; filled]).unwrap();
    assert_eq!(told.recv_timeout(TIMEOUT), Ok(Some(2)));
    assert!(!connection.has_next_reader.load(SeqCst));
}
