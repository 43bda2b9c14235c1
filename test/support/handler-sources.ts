/** Handlers that several suites deploy. Few different sources: each costs a run of the compiler. */

/** Does the action in the query parameter `do`; without it, returns the request as the handler sees it. */
export const ANYTHING = `
use rust_edge_gateway_sdk::prelude::*;
use std::{collections::hash_map::RandomState, hash::{BuildHasher, Hasher}, process, sync::OnceLock, thread, time::Duration};

/// A random number that tells processes apart: in a sandbox, each has the process id 1.
fn instance() -> u32 {
    static NUMBER: OnceLock<u32> = OnceLock::new();
    *NUMBER.get_or_init(|| RandomState::new().build_hasher().finish() as u32)
}

fn handle(req: Request) -> Response {
    match req.query_param("do").map(String::as_str) {
        Some("echo") => Response::binary(200, req.body_bytes(), "application/octet-stream"),
        Some("bytes") => Response::binary(200, (0..=255u8).collect::<Vec<_>>(), "application/octet-stream"),
        Some("sleep") => {
            thread::sleep(Duration::from_millis(req.query_param_as("ms").unwrap_or(0)));
            Response::json(200, json!({"instance": instance()}))
        }
        Some("wait") => {
            while !std::path::Path::new(req.query_param("file").expect("a file")).exists() {
                thread::sleep(Duration::from_millis(1));
            }
            Response::json(200, json!({"instance": instance()}))
        }
        Some("spin") => loop {
            thread::sleep(Duration::from_millis(1));
        },
        Some("panic") => panic!("on purpose"),
        Some("exit") => process::exit(3),
        Some("abort") => process::abort(),
        Some("print") => {
            println!("said on stdout");
            eprintln!("said on stderr");
            Response::no_content()
        }
        Some("child") => {
            process::Command::new("/bin/sleep").arg("1000").spawn().expect("a child");
            Response::no_content()
        }
        Some("status") => Response::new(req.query_param_as("code").unwrap_or(200)).with_body("a body"),
        Some("headers") => {
            let mut response = Response::text(200, "headers")
                .with_header("X-Own", "kept")
                .with_header("Keep-Alive", "timeout=1")
                .with_header("Transfer-Encoding", "chunked")
                .with_header("Connection", "X-Own, close")
                .with_header("Content-Length", "999");
            // A map holds several headers of one name only in different spellings.
            response.headers.insert("Set-Cookie".into(), "a=1".into());
            response.headers.insert("set-cookie".into(), "b=2".into());
            response
        }
        _ => Response::ok(json!({
            "method": req.method, "path": req.path, "query": req.query, "headers": req.headers, "params": req.params,
            "body": req.body, "client_ip": req.client_ip, "request_id": req.request_id, "instance": instance(),
        })),
    }
}
handler_loop!(handle);
`;

/** Answers with its number. */
export function numbered(number: number): string {
  return `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    std::thread::sleep(std::time::Duration::from_millis(req.query_param_as("ms").unwrap_or(0)));
    Response::text(200, format!("${number} {}", req.body.unwrap_or_default()))
}
handler_loop!(handle);
`;
}

/** The same; with the query parameter `pieces` it streams so many lines: its number, and theirs from 0 on. */
export function numberedStreams(number: number): string {
  return `
use rust_edge_gateway_sdk::prelude::*;
use std::{io::Write, thread::sleep, time::Duration};
fn handle(req: Request) -> StreamResponse {
    let pause = Duration::from_millis(req.query_param_as("ms").unwrap_or(0));
    let Some(pieces) = req.query_param_as::<u64>("pieces") else {
        sleep(pause);
        return Response::text(200, format!("${number} {}", req.body.unwrap_or_default())).into();
    };
    StreamResponse::new(move |out| {
        for piece in 0..pieces {
            writeln!(out, "${number} {piece}")?;
            out.flush()?;
            sleep(pause);
        }
        Ok(())
    })
}
handler_loop!(handle);
`;
}

/** Answers with its number, and is ready so many seconds after its start. */
export function slowToStart(number: number, seconds = 3): string {
  return numbered(number).replace(
    'handler_loop!(handle);',
    `mod served { use super::*; handler_loop!(handle); pub fn serve() { main() } }
fn main() { std::thread::sleep(std::time::Duration::from_secs(${seconds})); served::serve() }`,
  );
}

/** Takes about as many seconds to compile as it has millions of steps. */
export function slowToCompile(steps: number, number: number): string {
  return `#![allow(long_running_const_eval)]
const X: u64 = { let mut i = 0u64; while i < ${steps} { i += 1; } i + ${number} };
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response { Response::text(200, X.to_string()) }
handler_loop!(handle);
`;
}

/** Never ready. */
export const DIES_AT_START = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response { Response::ok("ready") }
mod real { use super::*; handler_loop!(handle); pub fn run() { main() } }
fn main() {
    if std::env::var("NO_SUCH_VARIABLE").is_ok() { real::run() }
    eprintln!("the config is missing");
    std::process::exit(9)
}
`;

/** Answers with its number and the variable GREETING. */
export function greeting(number: number): string {
  return numbered(number).replace(
    'req.body.unwrap_or_default()',
    'std::env::var("GREETING").unwrap_or_default()',
  );
}

/** Serves until the moment in its variable `UNTIL`, milliseconds since 1970: then it ends, and starts no more. */
export function until(number: number): string {
  return numbered(number).replace(
    'handler_loop!(handle);',
    `mod served { use super::*; handler_loop!(handle); pub fn serve() { main() } }
fn left() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    std::env::var("UNTIL").unwrap().parse::<u64>().unwrap().saturating_sub(now)
}
fn end() { eprintln!("its time is over"); std::process::exit(9) }
fn main() {
    if left() == 0 { end() }
    std::thread::spawn(|| { std::thread::sleep(std::time::Duration::from_millis(left())); end() });
    served::serve()
}`,
  );
}
