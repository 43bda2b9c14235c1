//! Endpoints as the supervisor sends them: where each is reached, with which limits and policies, and what serves it.
use std::path::PathBuf;

use serde::Deserialize;

use crate::policies::CompiledPolicies;

/// An endpoint, with its whole state.
#[derive(Deserialize)]
pub struct EndpointMessage {
    pub id: Box<str>,
    pub domain: Box<str>,
    pub method: Box<str>,
    pub route: Box<str>,
    pub routed: bool,
    pub limits: Limits,
    pub policies: Option<CompiledPolicies>,
    pub serving: Serving,
}

/// The limits that a front enforces.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Deadline of one request, milliseconds.
    pub timeout_ms: u32,
    /// Longest time between two pieces of a streamed response, milliseconds.
    pub idle_timeout_ms: u32,
    /// Requests of the endpoint at a time, in a handler or waiting for one.
    pub concurrent_requests: u32,
}

/// What serves an endpoint.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Serving {
    /// Nothing should run: requests get 503.
    None,
    /// A handler is being started: requests wait for a moment.
    Starting,
    /// A handler is started when a request comes, which waits for it.
    Asleep {
        sticky: Option<Box<Sticky>>,
    },
    Running {
        targets: Box<[HandlerTarget]>,
        sticky: Option<Box<Sticky>>,
    },
}

/// What tells callers apart that keep their target. Others are shared out request by request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sticky {
    /// The value of this header.
    Header(Box<str>),
    /// The value of this cookie.
    Cookie(Box<str>),
}

/// A handler process, and its share of the requests.
#[derive(Debug, Deserialize)]
pub struct HandlerTarget {
    pub weight: u32,
    pub version: u32,
    pub instance: Instance,
}

#[derive(Debug, Deserialize)]
pub struct Instance {
    /// Unique on this machine for the life of the gateway.
    pub id: u64,
    /// Its Unix socket; the path may lead into the handler's sandbox.
    pub socket: PathBuf,
    pub takes: Takes,
}

/// What a handler takes besides whole requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Takes {
    /// Nothing else: as those do that were made with an earlier SDK.
    Whole,
    /// Requests whose body follows.
    Streams,
    Websockets,
}
