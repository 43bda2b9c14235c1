//! Requests to an endpoint whose handler is asleep.
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use edge_wire::{HEADER_BYTES, Kind, header, parse_header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::{JoinHandle, spawn_local, yield_now};

use super::endpoint::{Context, Endpoint, Failure, HandlerAnswer};
use super::reply::Reply;
use super::{HandlerPool, RequestBody, SharedEndpoint};
use crate::endpoint_state::{Address, EndpointState};
use crate::memory::MemoryBudget;
use crate::messages::{FromFront, HandlerTarget, Instance, Limits, Serving, Takes};
use crate::supervisor::{Messages, channel};

fn run(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), test).await.expect("it ends") });
}

/// An endpoint in two threads of a front, and what they tell the supervisor.
struct Sleeping {
    shared: Arc<SharedEndpoint>,
    threads: [Rc<Endpoint>; 2],
    messages: Messages,
}

impl Sleeping {
    fn new() -> Self {
        let memory = Arc::new(MemoryBudget::new(1 << 20));
        let shared = Arc::new(SharedEndpoint::new("one".into()));
        let (supervisor, messages) = channel();
        let thread = || {
            let (pool, supervisor) = (HandlerPool::new(memory.clone()), supervisor.clone());
            Endpoint::new(shared.clone(), state(asleep()), Rc::new(Context { pool, supervisor }))
        };
        Self { threads: [thread(), thread()], shared, messages }
    }

    /// Applies a state as the main thread does.
    async fn apply(&self, serving: fn(PathBuf) -> Serving, socket: &Path) {
        self.shared.new_state_comes();
        for thread in &self.threads {
            if let Some(change) = thread.set_state(state(serving(socket.to_owned()))) {
                change.await;
            }
        }
    }

    /// Sends a request to one of the threads, which has begun when this returns.
    async fn request(&self, thread: usize, deadline: Instant) -> JoinHandle<Result<u16, Failure>> {
        let endpoint = self.threads[thread].clone();
        let request = spawn_local(async move {
            let reply = Reply::new(poll_fn(|cx| Poll::Ready(cx.waker().clone())).await);
            let body = Arc::new(RequestBody::new(Vec::new(), None));
            endpoint.request(b"{}", &body, &reply, deadline, None, None).await.map(|answered| match answered {
                HandlerAnswer::Whole(answer) => answer.head.status,
                HandlerAnswer::Streamed(..) => panic!("it is whole"),
            })
        });
        yield_now().await;
        request
    }

    /// How often the supervisor was told to start the handler since the last call.
    fn wakes(&mut self) -> usize {
        std::iter::from_fn(|| self.messages.try_next())
            .filter(|message| matches!(message, FromFront::Wake { endpoint_id } if endpoint_id == "one"))
            .count()
    }
}

fn asleep() -> Serving {
    Serving::Asleep { sticky: None }
}

fn state(serving: Serving) -> Arc<EndpointState> {
    let address = Address { domain: "*".into(), method: "GET".into(), route: "/".into(), routed: true };
    let limits = Limits { timeout_ms: 30_000, idle_timeout_ms: 60_000, concurrent_requests: 10 };
    Arc::new(EndpointState { address, limits, policies: None, serving })
}

fn running(socket: PathBuf) -> Serving {
    Serving::Running {
        targets: Box::new([HandlerTarget {
            weight: 100,
            version: 1,
            instance: Instance { id: 1, socket, takes: Takes::Whole },
        }]),
        sticky: None,
    }
}

/// Answers every request.
fn handler() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("front-asleep-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let socket = std::env::temp_dir().join(name);
    let listener = UnixListener::bind(&socket).unwrap();
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            spawn_local(answer(stream));
        }
    });
    socket
}

async fn answer(mut stream: UnixStream) {
    let mut bytes = [0; HEADER_BYTES + 2];
    let head = br#"{"status":200,"headers":[]}"#;
    while stream.read_exact(&mut bytes).await.is_ok() {
        let number = parse_header(&bytes).unwrap().unwrap().number;
        let frame = [&header(Kind::Response, number, head.len(), 0)[..], head].concat();
        stream.write_all(&frame).await.unwrap();
    }
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

#[test]
fn requests_of_all_threads_wake_their_handler_once_and_are_answered_by_it() {
    run(async {
        let mut sleeping = Sleeping::new();
        let mut requests = Vec::new();
        for number in 0..6 {
            requests.push(sleeping.request(number % 2, later()).await);
        }
        assert_eq!(sleeping.wakes(), 1);
        let socket = handler();
        sleeping.apply(running, &socket).await;
        for request in requests {
            assert_eq!(request.await.unwrap(), Ok(200));
        }
        let request = sleeping.request(0, later()).await;
        assert_eq!(request.await.unwrap(), Ok(200));
        assert_eq!(sleeping.wakes(), 0);
        std::fs::remove_file(socket).unwrap();
    });
}

#[test]
fn a_handler_is_woken_again_after_each_state_in_which_requests_still_wait() {
    run(async {
        let mut sleeping = Sleeping::new();
        let request = sleeping.request(0, later()).await;
        assert_eq!(sleeping.wakes(), 1);
        // Its limits have changed, or the supervisor was putting it to sleep when it was told.
        sleeping.apply(|_| asleep(), Path::new("")).await;
        yield_now().await;
        assert_eq!(sleeping.wakes(), 1);
        let other = sleeping.request(1, later()).await;
        assert_eq!(sleeping.wakes(), 0);
        // It sleeps again before they have been sent.
        let socket = handler();
        sleeping.apply(running, &socket).await;
        sleeping.apply(|_| asleep(), Path::new("")).await;
        yield_now().await;
        assert_eq!(sleeping.wakes(), 1);
        sleeping.apply(running, &socket).await;
        assert_eq!((request.await.unwrap(), other.await.unwrap()), (Ok(200), Ok(200)));
        std::fs::remove_file(socket).unwrap();
    });
}

#[test]
fn requests_that_wait_are_refused_when_nothing_should_run_or_their_time_is_over() {
    run(async {
        let mut sleeping = Sleeping::new();
        let request = sleeping.request(0, later()).await;
        sleeping.apply(|_| Serving::None, Path::new("")).await;
        assert_eq!(request.await.unwrap(), Err(Failure::Unavailable));
        assert_eq!(sleeping.wakes(), 1);

        sleeping.apply(|_| asleep(), Path::new("")).await;
        let request = sleeping.request(0, later()).await;
        sleeping.threads[0].close();
        assert_eq!(request.await.unwrap(), Err(Failure::Unavailable));

        let request = sleeping.request(1, Instant::now() + Duration::from_millis(10)).await;
        assert_eq!(request.await.unwrap(), Err(Failure::Unavailable));
    });
}

#[test]
fn an_endpoint_with_a_request_is_not_idle() {
    run(async {
        let sleeping = Sleeping::new();
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(sleeping.shared.idle_ms() > 0);
        let request = sleeping.request(0, later()).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(sleeping.shared.idle_ms(), 0);
        sleeping.apply(|_| Serving::None, Path::new("")).await;
        assert_eq!(request.await.unwrap(), Err(Failure::Unavailable));
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(sleeping.shared.idle_ms() > 0);
    });
}
