use super::*;
use crate::wire::frame::{credit, decode, header, DecodeResult};
#[cfg(feature = "async")]
use std::{future::Future, sync::Arc};

fn control(streams: &Streams, bytes: &[u8]) -> Result<u32, String> {
    let Ok(DecodeResult::Frame(frame, _)) = decode(bytes) else { panic!("it is whole") };
    streams.control(&frame)
}

#[test]
fn credit_is_taken_and_given_back() {
    let streams = Streams::default();
    let id = streams.open(1);
    assert_eq!(streams.lock().take(id, 10).unwrap(), 10);
    assert_eq!(streams.lock().take(id, usize::MAX).unwrap(), INITIAL_CREDIT - 10);
    assert_eq!(streams.lock().take(id, 10).unwrap(), 0);
    control(&streams, &credit(1, 4)).unwrap();
    control(&streams, &credit(2, 4)).unwrap();
    assert_eq!(streams.lock().take(id, 10).unwrap(), 4);
    control(&streams, &credit(1, u32::MAX)).unwrap();
    control(&streams, &credit(1, u32::MAX)).unwrap();
    assert_eq!(streams.lock().take(id, 10).unwrap(), 10);
}

#[cfg(feature = "async")]
#[test]
fn those_that_wait_for_the_end_of_a_stream_are_woken_by_any_end() {
    let ends: [fn(&Streams); 3] = [
        |streams| streams.remove(1),
        |streams| assert_eq!(control(streams, &header(Kind::Reset, 1, 0, 0)), Ok(0)),
        Streams::close,
    ];
    for end in ends {
        let streams = Streams::default();
        let id = streams.open(1);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut over = Box::pin(streams.over(id));
        assert!(over.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(!woken.0.load(SeqCst));
        end(&streams);
        assert!(woken.0.load(SeqCst));
        assert!(over.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }
}

/// Whether a task was woken.
#[cfg(feature = "async")]
#[derive(Default)]
struct Woken(AtomicBool);

#[cfg(feature = "async")]
impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn a_writer_of_before_has_nothing_of_the_next_stream() {
    let streams = Streams::default();
    let before = streams.open(1);
    streams.remove(1);
    let now = streams.open(1);
    assert!(streams.is_over(before) && !streams.is_over(now));
    assert_eq!(streams.lock().take(before, 10).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(streams.lock().take_all(before, 10).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(streams.lock().take(now, usize::MAX).unwrap(), INITIAL_CREDIT);
}

#[test]
fn nobody_wants_what_is_reset_or_closed() {
    let streams = Streams::default();
    let (reset, live) = (streams.open(1), streams.open(2));
    control(&streams, &header(Kind::Reset, 1, 0, 0)).unwrap();
    assert_eq!(streams.lock().take(reset, 10).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    assert!(streams.is_over(reset) && !streams.is_over(live));
    streams.close();
    assert!(streams.is_over(live));
    assert!(streams.lock().take(live, 10).is_err());
    assert!(control(&streams, &header(Kind::Stream, 1, 0, 0)).is_err());
    let short = [&header(Kind::Credit, 1, 0, 3)[..], b"123"].concat();
    assert!(control(&streams, &short).is_err());
}
