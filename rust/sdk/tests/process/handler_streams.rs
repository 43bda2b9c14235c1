//! The handler of the tests of streams. It goes on when another request tells it to.

use rust_edge_gateway_sdk::prelude::*;
use std::collections::HashSet;
use std::io::Write;
use std::sync::{Condvar, Mutex};

static MARKS: Mutex<Option<HashSet<String>>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

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

fn handle(req: Request) -> Result<StreamResponse, HandlerError> {
    let count: usize = req.query_param_as("n").unwrap_or(0);
    let mark = req.query_param("mark").cloned().unwrap_or_default();
    if req.path == "/much-later" {
        wait(&mark);
        // The thread that has set the mark reads by then.
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    Ok(match req.path.as_str() {
        "/quick" => Response::text(200, "quick").into(),
        "/missing" => return Err(HandlerError::NotFound),
        "/set" => {
            set(&mark);
            Response::no_content().into()
        }
        "/wait" => {
            wait(&mark);
            Response::no_content().into()
        }
        "/pieces" => StreamResponse::new(move |out| {
            write!(out, "first")?;
            out.flush()?;
            wait(&mark);
            write!(out, "second")
        })
        .with_status(203)
        .with_header("X-Kind", "pieces"),
        "/much" | "/much-later" => StreamResponse::new(move |out| {
            let written = (0..count).try_for_each(|n| out.write_all(&[n as u8; 1024]));
            if written.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
                set(&mark);
            }
            written
        }),
        "/much-and-then-waits" => StreamResponse::new(move |out| {
            (0..count).try_for_each(|n| out.write_all(&[n as u8; 1024]))?;
            out.flush()?;
            wait(&mark);
            Ok(())
        }),
        "/endless" => StreamResponse::new(move |out| loop {
            let written = out.write_all(b"more").and_then(|()| out.flush());
            if written.is_err() {
                set(&mark);
            }
            written?;
        }),
        "/fails" => StreamResponse::new(|out| {
            write!(out, "some")?;
            out.flush()?;
            Err(std::io::Error::other("the source is gone"))
        }),
        "/panics" => StreamResponse::new(|out| {
            write!(out, "some")?;
            out.flush()?;
            panic!("secret detail")
        }),
        "/bad-header" => StreamResponse::new(|_| panic!("not called")).with_header("X Note", "v"),
        "/events" => Sse::new(move |events| {
            events.send(Event::new().id("1").event("tick").data("a\nb"))?;
            wait(&mark);
            events.send(Event::new().comment("end"))
        })
        .into(),
        _ => Response::not_found().into(),
    })
}

handler_loop_result!(handle);
