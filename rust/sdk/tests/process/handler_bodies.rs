//! The handler of the tests of bodies that follow their requests.

use rust_edge_gateway_sdk::prelude::*;
use std::io::{BufRead, Read, Write};
use std::sync::{Condvar, Mutex};

/// How reading has ended, of requests to `/told`.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
static CHANGED: Condvar = Condvar::new();

fn handle(req: StreamRequest) -> Result<StreamResponse, HandlerError> {
    let mut body = req.body_reader();
    Ok(match req.path.as_str() {
        "/quick" => Response::text(200, "quick").into(),
        "/sum" => {
            let (mut sum, mut count) = (0_u64, 0_u64);
            while let Some(piece) = body.next_piece()? {
                sum += piece.iter().map(|&byte| u64::from(byte)).sum::<u64>();
                count += piece.len() as u64;
            }
            Response::ok(json!({"sum": sum, "count": count})).into()
        }
        "/echo" => StreamResponse::new(move |out| loop {
            let piece = body.fill_buf()?;
            if piece.is_empty() {
                return Ok(());
            }
            out.write_all(piece)?;
            out.flush()?;
            let length = piece.len();
            body.consume(length);
        }),
        "/first" => {
            let mut first = [0; 1];
            body.read_exact(&mut first)?;
            Response::text(200, first[0].to_string()).into()
        }
        "/told" => {
            let outcome = std::io::copy(&mut body, &mut std::io::sink());
            TOLD.lock().unwrap().push(outcome.as_ref().map_or_else(|error| error.to_string(), u64::to_string));
            CHANGED.notify_all();
            outcome?;
            Response::no_content().into()
        }
        "/what-was-told" => {
            drop(body);
            let mut told = TOLD.lock().unwrap();
            while told.is_empty() {
                told = CHANGED.wait(told).unwrap();
            }
            Response::ok(json!(std::mem::take(&mut *told))).into()
        }
        _ => Response::not_found().into(),
    })
}

handler_loop_result!(handle);
