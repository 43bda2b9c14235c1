//! Large streams of real handler processes, by memory that they are given.

use crate::client::{Connection, Handler};
use rust_edge_gateway_sdk::wire::frame::{
    two_numbers, Kind, INITIAL_CREDIT, MAX_CREDIT, MEMORY_BYTES, MIN_SHARED_BYTES,
};
use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

/// Programs, and what they are asked for.
const STREAMS: &[(&str, &str)] = &[
    ("test_handler_streams", "/much"),
    #[cfg(feature = "async")]
    ("test_handler_streams_async", "/much-at-once"),
    // A writer that blocks, among tasks.
    #[cfg(feature = "async")]
    ("test_handler_streams_async", "/blocking"),
];

/// Lines of 1 KiB of the longest stream here.
const LINES: usize = 6_000;

fn memory_of(bytes: usize) -> File {
    // SAFETY: the name is a string of C, and nothing else knows the new descriptor.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC)) };
    file.set_len(bytes as u64).unwrap();
    file
}

/// What has come of a stream.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    /// The number of these that were in memory.
    placed: usize,
}

impl Connection {
    /// Begins a stream of so many lines, and takes what comes before there is any credit for more.
    fn begin(&mut self, number: u32, path: &str, lines: usize) -> Received {
        self.send(number, &format!("{path}?n={lines}"), b"");
        self.begin_asked(number)
    }

    fn begin_asked(&mut self, number: u32) -> Received {
        assert_eq!(self.receive_frame().0, Kind::Stream);
        let mut received = Received::default();
        while received.bytes.len() < INITIAL_CREDIT {
            self.receive_more(number, &memory_of(0), &mut received);
        }
        assert_eq!(received.placed, 0);
        received
    }

    /// Takes the next piece, wherever it is. Whether there is one.
    fn receive_more(&mut self, number: u32, memory: &File, received: &mut Received) -> bool {
        let (kind, of, _, body) = self.receive_frame();
        assert_eq!(of, number);
        match kind {
            Kind::Data => received.bytes.extend(body),
            Kind::Shared => {
                let (start, bytes) = two_numbers(&body).unwrap();
                assert!(bytes as usize >= MIN_SHARED_BYTES && (start + bytes) as usize <= MEMORY_BYTES);
                let mut piece = vec![0; bytes as usize];
                memory.read_exact_at(&mut piece, start.into()).unwrap();
                received.bytes.extend(piece);
                received.placed += bytes as usize;
            }
            Kind::End => return false,
            other => panic!("{other:?}"),
        }
        true
    }

    /// Takes the rest, and gives credit for what was looked at last: as much is under way as may be.
    fn take_rest(&mut self, number: u32, memory: &File, received: &mut Received) {
        self.give_credit(number, MAX_CREDIT as u32);
        let mut before = received.bytes.len();
        while self.receive_more(number, memory, received) {
            if received.bytes.len() - before >= MAX_CREDIT / 2 {
                self.give_credit(number, (received.bytes.len() - before) as u32);
                before = received.bytes.len();
            }
        }
    }
}

fn assert_lines(Received { bytes, .. }: &Received, lines: usize) {
    assert_eq!(bytes.len(), lines * 1024);
    assert!(bytes.chunks(1024).enumerate().all(|(n, line)| line == [n as u8; 1024]));
}

#[test]
fn most_of_a_large_stream_is_where_it_may_be_put() {
    for (handler, path) in STREAMS.iter().map(|(handler, path)| (Handler::start(handler), path)) {
        let mut connection = handler.connect();
        let memory = memory_of(MEMORY_BYTES);
        // The second stream uses the memory of the first one again.
        for (number, file) in [(1, Some(&memory)), (2, None)] {
            let mut received = connection.begin(number, path, LINES);
            connection.give_memory(&[(number, 0)], file);
            connection.take_rest(number, &memory, &mut received);
            assert_lines(&received, LINES);
            assert!(received.placed > received.bytes.len() / 2, "{}", received.placed);
        }
        // A small one is data.
        let mut received = connection.begin(3, path, INITIAL_CREDIT / 1024 + 3);
        connection.give_memory(&[(3, 0)], None);
        connection.take_rest(3, &memory, &mut received);
        assert_eq!((received.bytes.len(), received.placed), (INITIAL_CREDIT + 3 * 1024, 0));
        assert_eq!(handler.stop(), "");
    }
}

#[test]
fn memory_comes_also_to_a_thread_that_has_read_since_before_the_stream() {
    let handler = Handler::start(STREAMS[0].0);
    let mut connection = handler.connect();
    let memory = memory_of(MEMORY_BYTES);
    connection.send(1, &format!("/much-later?n={LINES}&mark=later"), b"");
    connection.send(2, "/set?mark=later", b"");
    assert_eq!(connection.receive().number, 2);
    let mut received = connection.begin_asked(1);
    connection.give_memory(&[(1, 0)], Some(&memory));
    connection.take_rest(1, &memory, &mut received);
    assert_lines(&received, LINES);
    assert!(received.placed > received.bytes.len() / 2, "{}", received.placed);
    assert_eq!(handler.stop(), "");
}

#[test]
fn streams_have_memories_of_their_own() {
    for (handler, path) in STREAMS.iter().map(|(handler, path)| (Handler::start(handler), path)) {
        let mut connection = handler.connect();
        let memories = [memory_of(MEMORY_BYTES), memory_of(MEMORY_BYTES)];
        let mut first = connection.begin(1, path, LINES);
        let mut second = connection.begin(2, path, LINES);
        connection.give_memory(&[(1, 0)], Some(&memories[0]));
        connection.give_memory(&[(2, 1)], Some(&memories[1]));
        connection.take_rest(2, &memories[1], &mut second);
        connection.take_rest(1, &memories[0], &mut first);
        // The descriptor of new memory comes together with what is about known memory before it.
        let (mut third, mut fourth) = (connection.begin(3, path, LINES), connection.begin(4, path, LINES));
        let new = memory_of(MEMORY_BYTES);
        connection.give_memory(&[(3, 0), (4, 2)], Some(&new));
        connection.take_rest(3, &memories[0], &mut third);
        connection.take_rest(4, &new, &mut fourth);
        for received in [&first, &second, &third, &fourth] {
            assert_lines(received, LINES);
            assert!(received.placed > 0);
        }
    }
}

#[test]
fn what_cannot_be_used_as_memory_changes_nothing() {
    for (handler, path) in STREAMS.iter().map(|(handler, path)| (Handler::start(handler), path)) {
        let mut connection = handler.connect();
        let read_only = File::open("/proc/self/exe").unwrap();
        for (number, which, file) in [(1, 0, Some(&read_only)), (2, 7, None)] {
            let mut received = connection.begin(number, path, LINES);
            connection.give_memory(&[(number, which)], file);
            connection.take_rest(number, &memory_of(0), &mut received);
            assert_lines(&received, LINES);
            assert_eq!(received.placed, 0);
        }
        // Memory comes for a stream that is over.
        connection.give_memory(&[(99, 0)], Some(&memory_of(MEMORY_BYTES)));
        connection.send(4, "/quick", b"");
        assert_eq!(connection.receive().body, b"quick");
        assert_eq!(handler.stop(), "");
    }
}
