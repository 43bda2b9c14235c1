//! The messages between the supervisor of a gateway and its front, one JSON text to a line. `src/contracts/front.ts` is
//! made from these types.
//!
//! The supervisor sends whole states of endpoints, never differences: applying one twice is harmless, and a front that
//! has just started gets all of them.
mod endpoint;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::endpoint::{EndpointMessage, HandlerTarget, Instance, Limits, Serving, Sticky, Takes};
use crate::challenges::Challenge;
use crate::policies::Texts;
use crate::tls::Certificate;

/// A message to the front.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ToFront {
    /// The first message.
    Configure(Settings),
    Apply {
        seq: u64,
        upserts: Vec<EndpointMessage>,
        removals: Vec<String>,
        /// Parts of policies of these endpoints, as JSON by their digests.
        #[serde(default)]
        policies: Texts,
    },
    /// Use these certificates from now on, and no others.
    Certificates {
        seq: u64,
        certificates: Vec<Certificate>,
    },
    /// Answer these challenges of ACME servers from now on, and no others.
    Challenges {
        seq: u64,
        http: Vec<Challenge>,
        /// Shown to servers that ask by TLS-ALPN-01.
        tls: Vec<Certificate>,
    },
    /// Open the ports: all endpoints have been applied.
    Listen {
        seq: u64,
    },
    /// Answered when no request is in flight in a replaced instance.
    #[serde(rename_all = "camelCase")]
    Drain {
        seq: u64,
        instance_id: u64,
    },
    Metrics {
        seq: u64,
    },
    /// Asks for how long endpoints have had no request.
    #[serde(rename_all = "camelCase")]
    Idle {
        seq: u64,
        endpoint_ids: Vec<Box<str>>,
    },
    /// A request of the gateway itself to an endpoint, whatever its host, and whether it is enabled.
    #[serde(rename_all = "camelCase")]
    Request {
        seq: u64,
        endpoint_id: Box<str>,
        /// The request line and the headers, as HTTP/1.1, with the empty line behind them.
        head: String,
        /// The body, in base64.
        body: String,
        /// How often the handler was asked, this time included.
        attempt: Option<u32>,
    },
    /// Where a request of a client would go.
    Route {
        seq: u64,
        host: String,
        method: String,
        path: String,
    },
    /// Counts that a front has asked for with `Take`. It has no answer.
    Taken {
        id: u64,
        /// The counts of these rules. Null: they cannot be counted now. Null for a rule: this gateway has to count by
        /// itself.
        #[serde(deserialize_with = "Option::deserialize")]
        taken: Option<Vec<Option<RateStatus>>>,
    },
    /// This gateway lets its part of each limit of rates through.
    Share {
        /// How many gateways count by themselves.
        gateways: u32,
        /// The place of this gateway among them, from 0.
        place: u32,
    },
    /// From now on another front counts requests. The answer has the counts.
    HandOver {
        seq: u64,
    },
    /// Count requests, from what another front has handed over.
    Adopt {
        counts: String,
    },
    /// Count a request for a front that has handed its counts over.
    Count {
        seq: u64,
        rules: Vec<RateDescriptor>,
    },
    /// Finish what is in flight, take nothing new, and exit.
    Stop {
        seq: u64,
    },
}

/// A supervisor of the version before does not say it.
fn policy_memory_bytes() -> usize {
    64 * 1024 * 1024
}

/// The settings of a front.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    pub threads: usize,
    /// Longest body of a request, bytes.
    pub body_limit: usize,
    /// Bytes of bodies that may be in memory at a time.
    pub memory_bytes: usize,
    /// Bytes of what is made of policies: schemas, patterns, tokens that were verified.
    #[serde(default = "policy_memory_bytes")]
    pub policy_memory_bytes: usize,
    pub connections_limit: usize,
    pub head_timeout_ms: u64,
    pub idle_timeout_ms: u64,
    pub stall_timeout_ms: u64,
    pub min_bytes_per_second: u64,
    /// How long a stream may go on when its handler is replaced or stopped, or the front stops.
    pub stream_drain_ms: u64,
    /// Networks whose `X-Forwarded-For` and `Forwarded` are believed.
    pub trusted_proxies: Vec<String>,
    /// Whether the supervisor wants to know of every request.
    pub logs_requests: bool,
    /// Entries of the log for requests of one endpoint that do not fail.
    pub log_requests_per_second: u32,
    /// Intervals of figures begin at multiples of this, since 1970. A minute is a multiple of it.
    pub figures_every_seconds: u64,
    /// Whether machines count rates together: the supervisor does it.
    #[serde(default)]
    pub shares_rates: bool,
    /// All fronts with the same seed know callers by the same numbers. It is random, and known to no others.
    #[serde(default)]
    pub rate_seed: Option<Box<str>>,
    /// Which traces are exported; null: none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub traces: Option<Sampling>,
    /// Requests without TLS are sent to this port; null: they are served.
    #[serde(default, deserialize_with = "Option::deserialize")]
    pub redirect_port: Option<u16>,
    /// How long browsers that have used TLS are to use nothing else; 0 for not at all.
    #[serde(default)]
    pub strict_transport_seconds: u32,
}

/// A request was counted by a rule.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RateStatus {
    pub is_admitted: bool,
    /// Requests in this window, with this one.
    pub taken: u32,
    /// The time until the window ends, milliseconds.
    pub ends_ms: u64,
}

/// A rule by which a request is to be counted.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RateDescriptor {
    /// The name of the caller and the rule together.
    pub key: String,
    /// The name of the rule.
    pub rule: String,
    pub requests: u32,
    pub window_ms: u64,
}

/// Which traces are exported.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampling {
    /// Traces that the client has sampled, where it has one.
    pub parent_based: bool,
    /// The part of all other traces, from 0 to 1.
    pub ratio: f64,
}

/// A message from the front.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum FromFront {
    Done(Box<FrontAnswer>),
    /// A request to this instance exceeded its deadline.
    #[serde(rename_all = "camelCase")]
    DeadlineExceeded {
        endpoint_id: String,
        instance_id: u64,
    },
    /// The connection to this instance, which should serve, broke or could not be made.
    #[serde(rename_all = "camelCase")]
    ConnectionLost {
        endpoint_id: String,
        instance_id: u64,
        reason: String,
    },
    /// A request waits for a handler of an endpoint that is asleep. It is told once for each state of the endpoint.
    #[serde(rename_all = "camelCase")]
    Wake {
        endpoint_id: String,
    },
    /// A token has a key that is not among those of its issuer; told once in a while.
    #[serde(rename_all = "camelCase")]
    UnknownKey {
        endpoint_id: String,
    },
    /// Count a request of a caller, by one rule after the other until one has no more; see `Taken`.
    Take {
        id: u64,
        rules: Vec<RateDescriptor>,
    },
    /// Requests that handlers answered since the last such message.
    Handled {
        requests: u64,
    },
    /// A finished request.
    Request(Box<RequestEntry>),
    /// Finished requests of an endpoint that had no entry, since the last such message.
    #[serde(rename_all = "camelCase")]
    LeftOut {
        endpoint_id: String,
        requests: u64,
        /// How many of them have failed: the supervisor did not keep up.
        failed: u64,
    },
    /// What became of requests in an interval that is over.
    Interval {
        /// When it began, seconds since 1970.
        at: u64,
        endpoints: Vec<EndpointInterval>,
    },
    Log {
        level: Level,
        fields: Value,
        message: &'static str,
    },
}

/// The finished requests of an endpoint in an interval.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointInterval {
    pub id: String,
    /// The most requests at a time.
    pub in_flight: u32,
    pub versions: Vec<VersionInterval>,
}

/// The finished requests that one version answered.
#[derive(Debug, Serialize)]
pub struct VersionInterval {
    /// The version; none where no handler got the requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Requests by class of status: at 2 those with 200 to 299, at 0 those of no class.
    pub statuses: [u32; 6],
    /// Numbers of buckets of durations (`durations.rs`, `src/model/durations.ts`); `counts` has the requests of each.
    pub buckets: Vec<usize>,
    pub counts: Vec<u32>,
}

/// A finished request, for the log.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestEntry {
    pub endpoint_id: String,
    pub request_id: String,
    /// The id of the trace as in W3C Trace Context, 32 digits.
    pub trace_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<EntrySpan>,
    pub method: String,
    pub route: String,
    /// The path without the query.
    pub path: String,
    pub status: u16,
    pub ms: f64,
    /// The length of the body of the response.
    pub bytes: usize,
    pub client_ip: String,
    pub scheme: &'static str,
    /// The version of the handler that it was sent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Why the front answers instead of the handler, or why the response has no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The policy that has refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<&'static str>,
    /// Who sent it, as a policy has found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_label: Option<String>,
    /// What a policy has found wrong with a request that it let through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<String>,
    /// False for one that is only to be in the supervisor's own log.
    pub is_kept: bool,
}

/// What the gateway has done for a request, as a part of a trace.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntrySpan {
    /// 16 digits.
    pub id: String,
    /// The id of the part of the client, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Whether it is to be exported.
    pub is_recorded: bool,
    /// Microseconds since 1970.
    pub ended_us: u64,
}

/// The answer to a message of the supervisor.
#[derive(Debug, Default, Serialize)]
pub struct FrontAnswer {
    pub seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Milliseconds, in the order in which they were asked for; null for an endpoint that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Vec<Option<u64>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routed: Option<RouteAnswer>,
    /// See `HandOver`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<String>,
    /// The counts of the rules, as many as were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<Vec<Option<RateStatus>>>,
}

/// The response to a request of the gateway itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// The body, in base64.
    pub body: String,
    pub request_id: String,
    pub duration_ms: f64,
    /// Why the front answers instead of a handler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Where a request would go.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Match>,
    /// What it would hit without that endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Match>,
    /// Where there is no endpoint, one that would match if it were not disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Match>,
    /// Where there is no endpoint, the methods that the path has.
    pub allow: Vec<&'static str>,
    /// Why such a request would be answered with 400.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Match {
    pub endpoint_id: String,
    pub params: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Warn,
}

/// The figures of a front, from which the supervisor makes metrics.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// Connections of clients that are open.
    pub connections: usize,
    /// Requests that handlers are working on.
    pub requests_in_flight: usize,
    /// Requests that belong to no endpoint, by status.
    pub refused: BTreeMap<u16, u64>,
    /// Requests that policies answered, by their names.
    pub policies: BTreeMap<&'static str, u64>,
    /// Requests that policies have found something wrong with and let through, by their names.
    pub reported: BTreeMap<&'static str, u64>,
    /// Endpoints that have had requests.
    pub endpoints: Vec<EndpointMetrics>,
}

#[derive(Debug, Serialize)]
pub struct EndpointMetrics {
    pub id: String,
    /// Finished requests by class of status: at 2 those with 200 to 299.
    pub statuses: [u64; 10],
    /// Finished requests by duration, in the buckets of `figures::BOUNDS`, and at last those above.
    pub buckets: [u64; 16],
    /// Duration of all together.
    pub seconds: f64,
}
