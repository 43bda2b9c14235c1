//! The same as `handler_streams.rs`, for the async loop.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::tokio::io::AsyncWriteExt;
use rust_edge_gateway_sdk::tokio::sync::watch;
use rust_edge_gateway_sdk::AsyncBodyWriter;
use std::collections::HashSet;
use std::sync::{LazyLock, Mutex};

static MARKS: LazyLock<watch::Sender<HashSet<String>>> = LazyLock::new(|| watch::channel(HashSet::new()).0);

/// The writer of a stream that has ended.
static LEFT: Mutex<Option<AsyncBodyWriter>> = Mutex::new(None);

fn set(mark: &str) {
    MARKS.send_modify(|marks| {
        marks.insert(mark.to_owned());
    });
}

async fn wait(mark: &str) {
    MARKS.subscribe().wait_for(|marks| marks.contains(mark)).await.unwrap();
}

/// Sets a mark when it is dropped.
struct Dropped(String);

impl Drop for Dropped {
    fn drop(&mut self) {
        set(&self.0);
    }
}

async fn handle(req: Request) -> Result<StreamResponse, HandlerError> {
    let count: usize = req.query_param_as("n").unwrap_or(0);
    let mark = req.query_param("mark").cloned().unwrap_or_default();
    Ok(match req.path.as_str() {
        "/quick" => Response::text(200, "quick").into(),
        "/missing" => return Err(HandlerError::NotFound),
        "/set" => {
            set(&mark);
            Response::no_content().into()
        }
        "/wait" => {
            wait(&mark).await;
            Response::no_content().into()
        }
        "/pieces" => StreamResponse::new_async(|mut out| async move {
            out.send("first").await?;
            wait(&mark).await;
            out.write_all(b"second").await
        })
        .with_status(203)
        .with_header("X-Kind", "pieces"),
        "/much" => StreamResponse::new_async(move |mut out| async move {
            let _dropped = Dropped(mark);
            for n in 0..count {
                out.send([n as u8; 1024]).await?;
            }
            Ok(())
        }),
        "/much-at-once" => StreamResponse::new_async(move |mut out| async move {
            out.send((0..count).flat_map(|n| [n as u8; 1024]).collect::<Vec<_>>()).await
        }),
        "/leaves-its-writer" => StreamResponse::new_async(|mut out| async move {
            out.send("first").await?;
            *LEFT.lock().unwrap() = Some(out);
            Ok(())
        }),
        "/writes-with-it" => {
            let mut out = LEFT.lock().unwrap().take().expect("a writer that was left");
            out.closed().await;
            let failed = out.send("of another").await.map_err(|error| error.kind());
            Response::text(200, format!("{} {failed:?}", out.is_closed())).into()
        }
        "/blocking" => StreamResponse::new(move |out| {
            use std::io::Write;
            (0..count).try_for_each(|n| out.write_all(&[n as u8; 1024]))
        }),
        "/fails" => StreamResponse::new_async(|mut out| async move {
            out.send("some").await?;
            Err(std::io::Error::other("the source is gone"))
        }),
        "/panics" => StreamResponse::new_async(|mut out| async move {
            out.send("some").await?;
            panic!("secret detail")
        }),
        "/bad-header" => StreamResponse::new_async(|_| async { panic!("not called") }).with_header("X Note", "v"),
        "/events" => Sse::new_async(|mut events| async move {
            events.send(Event::new().id("1").event("tick").data("a\nb")).await?;
            wait(&mark).await;
            events.send(Event::new().comment("end")).await
        })
        .into(),
        _ => Response::not_found().into(),
    })
}

handler_loop_async_result!(handle);
