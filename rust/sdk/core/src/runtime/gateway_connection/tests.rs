use super::*;
use crate::wire::frame::header;
use serde_json::json;
use std::io::{Read, Write};
use std::sync::mpsc::{channel, Receiver};
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

/// Sets a request aside, as a thread does that reads for something else.
fn set_aside(connection: &GatewayConnection, received: &mut Buffer) {
    connection.read(received);
    let NextFrame::Request(request) = connection.next_frame(received) else { panic!("it is a request") };
    lock(&connection.set_aside).push_back(request);
    connection.has_set_aside.store(true, SeqCst);
}

/// Calls [`GatewayConnection::next`] on another thread; the number of the request comes when there is one.
fn next_on_a_thread(connection: &Arc<GatewayConnection>) -> Receiver<Option<u32>> {
    let (sender, numbers) = channel();
    let connection = connection.clone();
    thread::spawn(move || sender.send(connection.next().map(|request| request.number)));
    numbers
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
    let numbers = next_on_a_thread(&connection);
    while !connection.outgoing.is_writing() {
        thread::yield_now();
    }
    // The first one sets a request aside, and reads again, as there is no next reader yet.
    gateway.write_all(&request(2)).unwrap();
    assert_eq!(waiter.join().unwrap(), Some(true));
    assert!(!connection.is_read());
    let reading = connection.try_received();
    assert!(reading.is_some());
    gateway.read_exact(&mut vec![0; filled]).unwrap();
    assert_eq!(numbers.recv_timeout(TIMEOUT), Ok(Some(2)));
    assert!(!connection.has_next_reader.load(SeqCst));
}

#[test]
fn a_thread_that_reads_for_something_else_leaves_it_to_the_next_reader() {
    let (stream, mut gateway) = UnixStream::pair().unwrap();
    let connection = Arc::new(GatewayConnection::new(stream, Takes::Whole));
    let mut received = connection.try_received().expect("nobody reads");
    let numbers = next_on_a_thread(&connection);
    while !connection.has_next_reader.load(SeqCst) {
        thread::yield_now();
    }
    // The next reader has found no request, or does not until it may read. Now there is one.
    gateway.write_all(&request(2)).unwrap();
    set_aside(&connection, &mut received);
    let number = thread::spawn(move || {
        let number = numbers.recv_timeout(TIMEOUT);
        // A thread that waits for bytes goes on.
        gateway.shutdown(Shutdown::Both).unwrap();
        number
    });
    drop(received);
    // Another thread that waits for something else is quicker than the next reader.
    connection.read_aside(|| true);
    assert_eq!(number.join().unwrap(), Ok(Some(2)));
}

#[test]
fn an_answer_does_not_wait_for_a_request_that_was_set_aside() {
    let (stream, mut gateway) = UnixStream::pair().unwrap();
    gateway.set_read_timeout(Some(TIMEOUT)).unwrap();
    let connection = GatewayConnection::new(stream, Takes::Whole);
    gateway.write_all(&request(2)).unwrap();
    set_aside(&connection, &mut connection.try_received().expect("nobody reads"));
    connection.answer(1, Response::ok(()), false);
    assert_eq!(connection.next().map(|request| request.number), Some(2));
    gateway.read_exact(&mut [0; 8]).unwrap();
}
