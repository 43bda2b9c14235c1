//! The loop of SDK 0.1, for a `main` that is written by hand.
//!
//! ```no_run
//! use rust_edge_gateway_sdk_core::prelude::*;
//! fn main() {
//!     while let Ok(req) = read_request() {
//!         let response = Response::ok(json!({"path": req.path}));
//!         if send_response(response).is_err() {
//!             break;
//!         }
//!     }
//! }
//! ```
//!
//! It answers one request after the other. [`crate::handler_loop!`] answers many at once: prefer it.

use crate::runtime;

use crate::error::HandlerError;

use crate::request::Request;

use crate::response::Response;
use std::cell::RefCell;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Mutex, Once, OnceLock};
use std::thread;

/// A request, and where its answer goes.
type PendingCall = (Request, SyncSender<Response>);

/// The channel from the serving threads to the loop.
struct Calls {
    sender: SyncSender<PendingCall>,
    receiver: Mutex<Receiver<PendingCall>>,
}

impl Calls {
    fn new() -> Self {
        let (sender, receiver) = sync_channel(0);
        Calls { sender, receiver: Mutex::new(receiver) }
    }
}

static CALLS: OnceLock<Calls> = OnceLock::new();
/// Started by the first `read_request`, after `CALLS`, which it needs.
static SERVING: Once = Once::new();

thread_local! {
    /// Where the answer to the last request read by this thread goes.
    static UNANSWERED: RefCell<Option<SyncSender<Response>>> = const { RefCell::new(None) };
}

/// Waits for the next request. A request that was read before and not answered is answered with a 500.
///
/// # Errors
/// [`HandlerError::IpcError`] if the process cannot serve. When the gateway stops it, the process just ends.
pub fn read_request() -> Result<Request, HandlerError> {
    UNANSWERED.set(None);
    let calls = CALLS.get_or_init(Calls::new);
    SERVING.call_once(|| {
        thread::spawn(|| runtime::run(pass_on));
    });
    let receiver = calls.receiver.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (request, answer) = receiver.recv().map_err(|_| HandlerError::IpcError("no more requests".to_owned()))?;
    UNANSWERED.set(Some(answer));
    Ok(request)
}

/// Answers the request that this thread read last.
///
/// # Errors
/// [`HandlerError::IpcError`] if there is none.
pub fn send_response(response: Response) -> Result<(), HandlerError> {
    let answer = UNANSWERED.take().ok_or_else(|| HandlerError::IpcError("there is no request to answer".to_owned()))?;
    answer.send(response).map_err(|_| HandlerError::IpcError("the connection with the gateway is closed".to_owned()))
}

/// The handler as the runtime sees it: hands the request to the loop and waits for its answer.
fn pass_on(request: Request) -> Response {
    let unanswered = || Response::internal_error("The handler did not answer.");
    let (sender, answer) = sync_channel(1);
    match CALLS.get() {
        Some(calls) if calls.sender.send((request, sender)).is_ok() => answer.recv().unwrap_or_else(|_| unanswered()),
        _ => unanswered(),
    }
}
