/** Handlers that several suites deploy, and that stream: responses, request bodies, WebSockets. */

/** Streams what the query parameter `do` says. What waits for a mark goes on when another request sets it. */
export const STREAMS = `
use rust_edge_gateway_sdk::prelude::*;
use std::io::{Error, ErrorKind, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{collections::HashSet, process, sync::{Condvar, Mutex}, thread, time::Duration};

static MARKS: Mutex<Option<HashSet<String>>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();
/// By the stream that is marked \`slow\`.
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

fn set(mark: &str) {
    MARKS.lock().unwrap().get_or_insert_with(HashSet::new).insert(mark.to_owned());
    CHANGED.notify_all();
}

fn wait(mark: &str) {
    let mut marks = MARKS.lock().unwrap();
    while !marks.as_ref().is_some_and(|marks| marks.contains(mark)) {
        marks = CHANGED.wait(marks).unwrap();
    }
}

fn some(then: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> StreamResponse {
    StreamResponse::new(|out| {
        write!(out, "some")?;
        out.flush()?;
        then()
    })
}

fn handle(req: Request) -> StreamResponse {
    let count: usize = req.query_param_as("count").unwrap_or(0);
    let kib: usize = req.query_param_as("kib").unwrap_or(0);
    let ms = req.query_param_as("ms").unwrap_or(0);
    let mark = req.query_param("mark").cloned().unwrap_or_default();
    match req.query_param("do").map_or("", String::as_str) {
        "whole" => Response::text(200, "whole").into(),
        "written" => Response::text(200, WRITTEN.load(Ordering::Relaxed).to_string()).into(),
        "set" => {
            set(&mark);
            Response::no_content().into()
        }
        "wait" => {
            wait(&mark);
            Response::no_content().into()
        }
        "pieces" => StreamResponse::new(move |out| {
            write!(out, "first")?;
            out.flush()?;
            wait(&mark);
            write!(out, "second")
        }).with_status(203).with_header("X-Kind", "pieces"),
        "much" => StreamResponse::new(move |out| {
            for _ in 0..kib {
                out.write_all(&[b'x'; 1024])?;
                if mark == "slow" {
                    WRITTEN.fetch_add(1024, Ordering::Relaxed);
                }
            }
            Ok(())
        }),
        "endless" => StreamResponse::new(move |out| loop {
            let written = writeln!(out, "more").and_then(|()| out.flush());
            if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
                set(&mark);
            }
            written?;
            thread::sleep(Duration::from_millis(5));
        }),
        "ticks" => StreamResponse::new(move |out| {
            for _ in 0..count {
                writeln!(out, "tick")?;
                out.flush()?;
                thread::sleep(Duration::from_millis(ms));
            }
            Ok(())
        }),
        "events" => Sse::new(move |events| {
            events.send(Event::new().id("1").event("tick").data("one\\ntwo"))?;
            wait(&mark);
            Ok(())
        }).into(),
        "fails" => some(|| Err(Error::other("on purpose"))),
        "panics" => some(|| panic!("on purpose")),
        "exits" => some(|| process::exit(3)),
        _ => Response::not_found().into(),
    }
}
handler_loop!(handle);
`;

/**
 * Sends so many events (`count`), one each `ms`: their ids are their numbers, their data when they were made,
 * microseconds since 1970. With `do=open`, answers with the number of streams that are open.
 */
export const TICKING_EVENTS = `
use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::tokio::time::{interval, Duration};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Counts a stream until it ends, or is dropped.
struct Open;

impl Open {
    fn new() -> Self {
        OPEN.fetch_add(1, Relaxed);
        Open
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Relaxed);
    }
}

async fn handle(req: Request) -> StreamResponse {
    if req.query_param("do").is_some() {
        return Response::text(200, OPEN.load(Relaxed).to_string()).into();
    }
    let count: u64 = req.query_param_as("count").unwrap_or(0);
    let ms = req.query_param_as("ms").unwrap_or(1_000);
    Sse::new_async(move |mut events| async move {
        let _open = Open::new();
        let mut ticks = interval(Duration::from_millis(ms));
        for n in 1..=count {
            ticks.tick().await;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            events.send(Event::new().id(n.to_string()).data(now.as_micros().to_string())).await?;
        }
        Ok(())
    })
    .into()
}

handler_loop_async!(handle);
`;

/** Reads the body of its request as the query parameter `do` says. What waits for a mark goes on when one sets it. */
export const UPLOADS = `
use rust_edge_gateway_sdk::prelude::*;
use std::io::{BufRead, Read, Write};
use std::{collections::HashMap, sync::{Condvar, Mutex}};

/// What was said of each mark.
static MARKS: Mutex<Option<HashMap<String, String>>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

fn set(mark: &str, text: String) {
    MARKS.lock().unwrap().get_or_insert_default().insert(mark.to_owned(), text);
    CHANGED.notify_all();
}

fn wait(mark: &str) -> String {
    let mut marks = MARKS.lock().unwrap();
    loop {
        if let Some(text) = marks.as_ref().and_then(|marks| marks.get(mark)) {
            return text.clone();
        }
        marks = CHANGED.wait(marks).unwrap();
    }
}

fn count(body: &mut impl Read) -> std::io::Result<u64> {
    std::io::copy(body, &mut std::io::sink())
}

fn handle(req: StreamRequest) -> Result<StreamResponse, HandlerError> {
    let mark = req.query_param("mark").cloned().unwrap_or_default();
    let mut body = req.body_reader();
    Ok(match req.query_param("do").map_or("", String::as_str) {
        "count" => Response::text(200, count(&mut body)?.to_string()).into(),
        "set" => {
            set(&mark, String::new());
            Response::no_content().into()
        }
        "wait" => Response::text(200, wait(&mark)).into(),
        // Reads nothing before the mark is set.
        "hold" => {
            wait(&mark);
            Response::text(200, count(&mut body)?.to_string()).into()
        }
        // Says at the mark how reading has ended.
        "tell" => {
            let mut first = [0; 1];
            body.read_exact(&mut first)?;
            set(&(mark.clone() + "-begun"), String::new());
            let outcome = count(&mut body);
            set(&mark, outcome.as_ref().map_or_else(ToString::to_string, u64::to_string));
            outcome?;
            Response::no_content().into()
        }
        // Answers, and leaves the rest.
        "first" => {
            let mut first = [0; 1];
            body.read_exact(&mut first)?;
            Response::text(200, (first[0] as char).to_string()).into()
        }
        "refuse" => Response::json(403, json!({"error": "not here"})).into(),
        "early" => StreamResponse::new(|out| out.write_all(b"early")).into(),
        "echo" => StreamResponse::new(move |out| loop {
            let piece = body.fill_buf()?;
            if piece.is_empty() {
                return Ok(());
            }
            out.write_all(piece)?;
            out.flush()?;
            let length = piece.len();
            body.consume(length);
        }).into(),
        _ => Response::not_found().into(),
    })
}
handler_loop_result!(handle);
`;

/**
 * WebSockets that do what the query parameter `do` says; without it, send back what comes. What waits for a mark goes
 * on when another socket sets it.
 */
export const SOCKETS = `
use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::tokio::{sync::watch, time::{sleep, Duration}};
use std::{collections::HashSet, sync::LazyLock};

static MARKS: LazyLock<watch::Sender<HashSet<String>>> = LazyLock::new(|| watch::channel(HashSet::new()).0);

fn set(mark: &str) {
    MARKS.send_modify(|marks| { marks.insert(mark.to_owned()); });
}

async fn wait(mark: &str) {
    MARKS.subscribe().wait_for(|marks| marks.contains(mark)).await.expect("the sender is static");
}

async fn echo(socket: &mut AsyncWebSocket) -> Result<(), HandlerError> {
    while let Some(message) = socket.recv().await {
        if let Message::Text(_) | Message::Binary(_) = message {
            socket.send(message).await?;
        }
    }
    Ok(())
}

async fn handle(mut socket: AsyncWebSocket) -> Result<(), HandlerError> {
    let request = socket.request().clone();
    let mark = request.query_param("mark").cloned().unwrap_or_default();
    let count: usize = request.query_param_as("count").unwrap_or(0);
    match request.query_param("do").map_or("", String::as_str) {
        "head" => {
            let about = json!({"path": request.path, "subject": request.subject(), "protocols": socket.protocols()});
            socket.send(about.to_string()).await?;
        }
        "chooses" => {
            let mut socket = socket.with_protocol("v2").with_header("X-Own", "kept");
            echo(&mut socket).await?;
        }
        "chooses-other" => {
            let mut socket = socket.with_protocol("v9");
            echo(&mut socket).await?;
        }
        "refuses" => return socket.refuse(Response::text(403, "members only")),
        "missing" => return Err(HandlerError::NotFound),
        "returns" => {}
        "closes" => socket.close(4001, "done").await?,
        "fails" => {
            socket.recv().await;
            return Err(HandlerError::Internal("on purpose".into()));
        }
        "panics" => {
            socket.recv().await;
            panic!("on purpose");
        }
        "exits" => {
            socket.recv().await;
            std::process::exit(3);
        }
        "pings" => {
            socket.send(Message::Ping(b"there".to_vec())).await?;
            while let Some(message) = socket.recv().await {
                socket.send(format!("{message:?}")).await?;
            }
        }
        "tells" => {
            while let Some(message) = socket.recv().await {
                if let Message::Close(Some(frame)) = message {
                    set(&format!("{mark}-{}-{}", frame.code, frame.reason));
                }
            }
            set(&mark);
        }
        "set" => {
            set(&mark);
            socket.send("set").await?;
        }
        "wait" => {
            socket.accept()?;
            wait(&mark).await;
            socket.send(mark).await?;
        }
        "slow" => {
            socket.accept()?;
            wait(&mark).await;
            echo(&mut socket).await?;
        }
        "much" => {
            for n in 0..count {
                socket.send(vec![n as u8; 1024]).await?;
            }
            set(&mark);
        }
        "empties" => {
            for _ in 0..count {
                socket.send("").await?;
            }
        }
        "ticks" => {
            let (sender, mut receiver) = socket.split()?;
            let ticking = sender.clone();
            spawn(async move {
                while ticking.send("tick").await.is_ok() {
                    sleep(Duration::from_millis(5)).await;
                }
            });
            while let Some(message) = receiver.recv().await {
                if let Message::Text(_) = message {
                    sender.send(message).await?;
                }
            }
        }
        _ => echo(&mut socket).await?,
    }
    Ok(())
}
handler_ws_async!(handle);
`;

/** The same with threads: sends back what comes, and ticks. */
export const BLOCKING_SOCKETS = `
use rust_edge_gateway_sdk::prelude::*;
use std::{thread, time::Duration};

fn handle(socket: WebSocket) -> Result<(), HandlerError> {
    let ticks = socket.request().query_param("do").is_some_and(|what| what == "ticks");
    let (sender, mut receiver) = socket.split()?;
    if ticks {
        let ticking = sender.clone();
        thread::spawn(move || {
            while ticking.send("tick").is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
    }
    while let Some(message) = receiver.recv() {
        match message {
            Message::Text(text) if text == "panic" => panic!("on purpose"),
            Message::Text(_) | Message::Binary(_) => sender.send(message)?,
            _ => {}
        }
    }
    Ok(())
}
handler_ws!(handle);
`;
