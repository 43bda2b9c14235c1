//! The same as `handler_bodies.rs`, for the async loop.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::tokio::io::{copy, sink, AsyncReadExt};
use rust_edge_gateway_sdk::tokio::sync::watch;
use std::sync::LazyLock;

static TOLD: LazyLock<watch::Sender<Vec<String>>> = LazyLock::new(|| watch::channel(Vec::new()).0);

async fn handle(req: StreamRequest) -> Result<StreamResponse, HandlerError> {
    let mut body = req.async_body_reader();
    Ok(match req.path.as_str() {
        "/quick" => Response::text(200, "quick").into(),
        "/sum" => {
            let (mut sum, mut count) = (0_u64, 0_u64);
            while let Some(piece) = body.next_piece().await? {
                sum += piece.iter().map(|&byte| u64::from(byte)).sum::<u64>();
                count += piece.len() as u64;
            }
            Response::ok(json!({"sum": sum, "count": count})).into()
        }
        "/echo" => StreamResponse::new_async(move |mut out| async move {
            while let Some(piece) = body.next_piece().await? {
                out.send(piece).await?;
            }
            Ok(())
        }),
        "/first" => Response::text(200, body.read_u8().await?.to_string()).into(),
        "/told" => {
            let outcome = copy(&mut body, &mut sink()).await;
            let told = outcome.as_ref().map_or_else(|error| error.to_string(), u64::to_string);
            TOLD.send_modify(|all| all.push(told));
            outcome?;
            Response::no_content().into()
        }
        "/what-was-told" => {
            drop(body);
            TOLD.subscribe().wait_for(|told| !told.is_empty()).await.unwrap();
            Response::ok(json!(TOLD.send_replace(Vec::new()))).into()
        }
        _ => Response::not_found().into(),
    })
}

handler_loop_async_result!(handle);
