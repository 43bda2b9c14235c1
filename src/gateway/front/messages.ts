/**
 * The messages between the supervisor of a gateway and its front, one JSON text to a line. The other end is
 * `rust/front/src/messages.rs`, with `endpoint_state.rs`. The supervisor sends whole states of endpoints, never
 * differences: applying one twice is harmless, and a new front gets all of them.
 */
import type { HandlerResponse, Routed } from '../../internal/gateway-requests.js';
import type { CompiledPolicies, NamedPolicies } from '../policies/compiled-policies.js';

/** How the ids of endpoints begin that exist for a trial of a version; the front knows it too (`internal.rs`). */
export const TRIAL = 'invocation-';

/** One handler process, as the front knows it. */
export interface InstanceRef {
  /** Unique on this machine for the life of the gateway. */
  readonly id: number;
  /** Path of its Unix socket for the front; it may lead into the handler's sandbox. */
  readonly socket: string;
  readonly takes: Takes;
}

/** What a handler takes: whole requests, those whose body follows as well, or WebSockets as well. */
export type Takes = 'whole' | 'streams' | 'websockets';

/** A handler process, and its share of the requests. */
export interface Target {
  readonly weight: number;
  readonly version: number;
  readonly instance: InstanceRef;
}

/** The name of a header, or of a cookie. Callers without it are shared out request by request. */
export type Sticky = { readonly header: string } | { readonly cookie: string };

/** What serves an endpoint. */
export type ServingState =
  /** Nothing should run: requests get 503. */
  | { readonly kind: 'none' }
  /** A handler is being started: requests are queued for a moment. */
  | { readonly kind: 'starting' }
  /** A handler is started when a request comes, which waits for it. */
  | AsleepState
  | RunningState;

export interface AsleepState {
  readonly kind: 'asleep';
  /** That of the handlers that will be started. */
  readonly sticky?: Sticky;
}

export interface RunningState {
  readonly kind: 'running';
  readonly targets: readonly Target[];
  /** What tells callers apart that keep their target. */
  readonly sticky?: Sticky;
}

/** All that a front needs to know of an endpoint. */
export interface EndpointState {
  readonly id: string;
  /** A host name, or `*` for all. */
  readonly domain: string;
  readonly method: string;
  readonly route: string;
  /** False: defined, but disabled. */
  readonly routed: boolean;
  readonly limits: RequestLimits;
  /** None for most. */
  readonly policies?: CompiledPolicies;
  readonly serving: ServingState;
}

/** The state of an endpoint in a message. */
export interface SentState extends Omit<EndpointState, 'policies'> {
  readonly policies?: NamedPolicies;
}

/** What a message has of endpoints. */
export interface StateMessage {
  readonly upserts: readonly SentState[];
  /** The parts of their policies, as JSON by their digests. */
  readonly policies: Readonly<Record<string, string>>;
}

/** The limits that a front enforces. */
export interface RequestLimits {
  /** Deadline of one request, milliseconds. */
  readonly timeoutMs: number;
  /** Longest time between two pieces of a streamed response, milliseconds. */
  readonly idleTimeoutMs: number;
  /** Requests of the endpoint at a time, in a handler or queued. */
  readonly concurrentRequests: number;
}

/** The settings of a front. */
export interface FrontSettings {
  readonly threads: number;
  /** Longest body of a request, bytes. */
  readonly bodyLimit: number;
  /** Bytes of request and response bodies that it may hold in memory. */
  readonly memoryBytes: number;
  /** Bytes of what it makes of policies: schemas, patterns, tokens that were verified. */
  readonly policyMemoryBytes: number;
  readonly connectionsLimit: number;
  readonly headTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly stallTimeoutMs: number;
  readonly minBytesPerSecond: number;
  /** How long a streamed response may go on when its handler is replaced or stopped, or the front stops. */
  readonly streamDrainMs: number;
  /** Networks whose `X-Forwarded-For` and `Forwarded` are believed. */
  readonly trustedProxies: readonly string[];
  /** Whether the front tells of all requests, not only of those that have an entry in the log. */
  readonly logsRequests: boolean;
  /** Entries of the log for requests of one endpoint that do not fail. */
  readonly logRequestsPerSecond: number;
  /** It reports the figures of requests at multiples of this, since 1970. A minute is a multiple of it. */
  readonly figuresEverySeconds: number;
  /** Whether machines count rates together, by this process. */
  readonly sharesRates: boolean;
  /** By it all fronts of a gateway know callers by the same numbers; random, and told to nobody else. */
  readonly rateSeed: string;
  /** Which traces are exported; null: none. */
  readonly traces: Sampling | null;
  /** Requests without TLS are sent to this port; null: they are served. */
  readonly redirectPort: number | null;
  /** For so long browsers that have used TLS use nothing else; 0: it is not said. */
  readonly strictTransportSeconds: number;
}

/** What clients of TLS that ask for a host are shown. */
export interface HostCertificate {
  readonly host: string;
  /** PEM, its own certificate first. */
  readonly chain: string;
  /** PEM. */
  readonly key: string;
}

/** What ACME servers ask for. */
export interface FrontChallenges {
  /** Below `/.well-known/acme-challenge/` of a host. */
  readonly http: readonly { readonly host: string; readonly token: string; readonly answer: string }[];
  /** In handshakes by the protocol `acme-tls/1`, and in no others. */
  readonly tls: readonly HostCertificate[];
}

/** Which traces are exported. */
export interface Sampling {
  /** Those that the client has sampled, where it has a trace. */
  readonly parentBased: boolean;
  /** Of others, this part: from 0 to 1. */
  readonly ratio: number;
}

/** The first message to a front; it has no answer. */
export interface Configure extends FrontSettings {
  readonly type: 'configure';
}

/** A request to a front, which it answers with `done`. */
export type FrontRequest =
  /** Answered when all requests go where the new states say. */
  | ({ readonly type: 'apply'; readonly removals: readonly string[] } & StateMessage)
  /** Use these certificates from now on, and no others. */
  | { readonly type: 'certificates'; readonly certificates: readonly HostCertificate[] }
  /** Answer these challenges of ACME servers from now on, and no others. */
  | ({ readonly type: 'challenges' } & FrontChallenges)
  /** Open the ports: all endpoints have been applied. */
  | { readonly type: 'listen' }
  /** Answered when no request is in flight in a replaced instance. */
  | { readonly type: 'drain'; readonly endpointId: string; readonly instanceId: number }
  | { readonly type: 'metrics' }
  /** For how long have these had no request? */
  | { readonly type: 'idle'; readonly endpointIds: readonly string[] }
  /** A request of the gateway itself to an endpoint, whatever its host, and whether it is enabled. */
  | {
      readonly type: 'request';
      readonly endpointId: string;
      /** The request line and the headers, as HTTP/1.1, with the empty line behind them. */
      readonly head: string;
      /** In base64. */
      readonly body: string;
      /** How often the handler was asked, this time included. */
      readonly attempt?: number | undefined;
    }
  /** Where a request of a client would go. */
  | { readonly type: 'route'; readonly host: string; readonly method: string; readonly path: string }
  /** From now on another front counts requests. The answer has the counts. */
  | { readonly type: 'handOver' }
  /** Count a request for a front that has handed its counts over. */
  | { readonly type: 'count'; readonly rules: readonly RateToTake[] }
  /** Finish what is in flight, accept nothing new, and exit. */
  | { readonly type: 'stop' };

/** What a front is told without an answer. */
export type FrontNotice = Taken | Share | Adopt;

/** This gateway lets its part of each limit of rates through. */
export interface Share {
  readonly type: 'share';
  /** Those that count by themselves. */
  readonly gateways: number;
  /** That of this one among them, from 0. */
  readonly place: number;
}

/** Count requests, from what another front has handed over. */
export interface Adopt {
  readonly type: 'adopt';
  readonly counts: string;
}

/** Counts that a front has asked for. */
export interface Taken {
  readonly type: 'taken';
  readonly id: number;
  /** Null: they cannot be counted now. */
  readonly taken: RatesTaken | null;
}

/** A rule by which a request is to be counted. */
export interface RateToTake {
  /** Of the caller and the rule. */
  readonly key: string;
  /** Of the rule. */
  readonly rule: string;
  readonly requests: number;
  readonly windowMs: number;
}

/** A request was counted by a rule. */
export interface RateTaken {
  readonly isAdmitted: boolean;
  /** In this window, with this one. */
  readonly taken: number;
  /** Until the window ends. */
  readonly endsMs: number;
}

/** A request was counted by so many rules. Null: the front has to count it by itself. */
export type RatesTaken = readonly (RateTaken | null)[];

/** The answer to the request with this number. */
export interface Done {
  readonly type: 'done';
  readonly seq: number;
  readonly error?: string;
  readonly metrics?: FrontFigures;
  /** Milliseconds, in the order in which they were asked for; null for an endpoint that is not known. */
  readonly idle?: readonly (number | null)[];
  readonly response?: Response;
  readonly routed?: Routed;
  /** What was handed over. */
  readonly counts?: string;
  /** As many as were counted. */
  readonly taken?: RatesTaken;
}

/** The response to a request of the gateway itself. */
interface Response extends Omit<HandlerResponse, 'bodyBase64'> {
  /** In base64. */
  readonly body: string;
}

/** What a front reports unasked. */
export type FrontReport =
  /** A request to this instance exceeded its deadline. */
  | { readonly type: 'deadlineExceeded'; readonly endpointId: string; readonly instanceId: number }
  /** The connection to this instance, which should serve, broke or could not be made. */
  | {
      readonly type: 'connectionLost';
      readonly endpointId: string;
      readonly instanceId: number;
      readonly reason: string;
    }
  /** A request waits for a handler of an endpoint that is asleep. It is told once for each state of the endpoint. */
  | { readonly type: 'wake'; readonly endpointId: string }
  /** Count a request of a caller, by one rule after the other until one has no more; see `Taken`. */
  | { readonly type: 'take'; readonly id: number; readonly rules: readonly RateToTake[] }
  /** A token has a key that is not among those of its issuer; told once in a while. */
  | { readonly type: 'unknownKey'; readonly endpointId: string }
  /** Requests that handlers answered since the last such message. */
  | { readonly type: 'handled'; readonly requests: number }
  | FinishedRequest
  /** So many finished requests had no entry in the log. */
  | {
      readonly type: 'leftOut';
      readonly endpointId: string;
      readonly requests: number;
      /** Those of them that have failed. */
      readonly failed: number;
    }
  /** What became of requests in an interval that is over. */
  | {
      readonly type: 'interval';
      /** When it began, seconds since 1970. */
      readonly at: number;
      readonly endpoints: readonly EndpointInterval[];
    }
  | {
      readonly type: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly fields: Readonly<Record<string, unknown>>;
      readonly message: string;
    };

/** A finished request, for the log. */
export interface FinishedRequest {
  readonly type: 'request';
  readonly endpointId: string;
  readonly requestId: string;
  /** Of W3C Trace Context, 32 digits. */
  readonly traceId: string;
  /** Where the trace is one that others know of. */
  readonly span?: {
    /** 16 digits. */
    readonly id: string;
    /** That of the client. */
    readonly parentId?: string;
    /** Whether it is exported. */
    readonly isRecorded: boolean;
    /** Microseconds since 1970. */
    readonly endedUs: number;
  };
  readonly method: string;
  readonly route: string;
  /** Without the query. */
  readonly path: string;
  readonly status: number;
  readonly ms: number;
  /** Of the body of the response. */
  readonly bytes: number;
  readonly clientIp: string;
  readonly scheme: string;
  /** Of the handler that it was sent to. */
  readonly version?: number;
  /** Why the front answers instead of the handler. */
  readonly error?: string;
  /** The policy that has refused it. */
  readonly policy?: string;
  /** Who sent it, as a policy has found. */
  readonly subject?: string;
  readonly keyLabel?: string;
  /** What a policy has found wrong with a request that it let through. */
  readonly reported?: string;
  /** False for one that has no entry in the log. */
  readonly isKept: boolean;
}

/** The finished requests of an endpoint in an interval. */
export interface EndpointInterval {
  readonly id: string;
  /** The most requests at a time. */
  readonly inFlight: number;
  readonly versions: readonly VersionInterval[];
}

/** Those that one version answered. */
export interface VersionInterval {
  /** None: no handler was asked. */
  readonly version?: number;
  /** By class of status: at 2 those with 200 to 299, at 0 those of no class. */
  readonly statuses: readonly number[];
  /** By duration, see `src/model/durations.ts`. */
  readonly buckets: readonly number[];
  readonly counts: readonly number[];
}

/** From a front. */
export type FromFront = Done | FrontReport;

/** The figures of a front since its start. */
export interface FrontFigures {
  /** Connections of clients that are open. */
  readonly connections: number;
  readonly requestsInFlight: number;
  /** Requests that belong to no endpoint, by status. */
  readonly refused: Readonly<Record<string, number>>;
  /** Requests that policies answered, by their names. */
  readonly policies: Readonly<Record<string, number>>;
  /** Those that policies let through though something is wrong with them. */
  readonly reported: Readonly<Record<string, number>>;
  /** Endpoints that have had requests. */
  readonly endpoints: readonly EndpointFigures[];
}

export interface EndpointFigures {
  readonly id: string;
  /** Finished requests by class of status: at 2 those with 200 to 299. */
  readonly statuses: readonly number[];
  /** Finished requests by duration: one count for each of the bounds, and at last those above. */
  readonly buckets: readonly number[];
  /** Duration of all together. */
  readonly seconds: number;
}
