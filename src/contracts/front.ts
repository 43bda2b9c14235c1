/**
 * The messages between the supervisor of a gateway and its front, one JSON text to a line.
 *
 * `npm run contracts` has written this file from `rust/front/src`: change it there.
 */

/** How the ids of endpoints begin that exist for a trial of a version only (`src/gateway/invocations.ts`). */
export const TRIAL = 'invocation-';

/** Upper bounds of the buckets of durations, seconds. */
export const BOUNDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
] as const;

/** Durations below 1 µs, which is 16 of these, are counted exactly. */
export const UNIT_NS = 64;

/** Buckets for each power of two, and for all durations below the first one. */
export const PER_OCTAVE = 16;

/** What an ACME server asks for below `/.well-known/acme-challenge/` of a host, and what it expects. */
export interface Challenge {
  readonly host: string;
  readonly token: string;
  readonly answer: string;
}

/** An endpoint, with its whole state. */
export interface EndpointMessage {
  readonly id: string;
  readonly domain: string;
  readonly method: string;
  readonly route: string;
  readonly routed: boolean;
  readonly limits: Limits;
  readonly policies?: CompiledPolicies;
  readonly serving: Serving;
}

/** The limits that a front enforces. */
export interface Limits {
  /** Deadline of one request, milliseconds. */
  readonly timeoutMs: number;
  /** Longest time between two pieces of a streamed response, milliseconds. */
  readonly idleTimeoutMs: number;
  /** Requests of the endpoint at a time, in a handler or waiting for one. */
  readonly concurrentRequests: number;
}

/** What serves an endpoint. */
export type Serving =
  /** Nothing should run: requests get 503. */
  | { readonly kind: 'none' }
  /** A handler is being started: requests wait for a moment. */
  | { readonly kind: 'starting' }
  /** A handler is started when a request comes, which waits for it. */
  | {
      readonly kind: 'asleep';
      readonly sticky?: Sticky;
    }
  | {
      readonly kind: 'running';
      readonly targets: readonly HandlerTarget[];
      readonly sticky?: Sticky;
    };

/** What tells callers apart that keep their target. Others are shared out request by request. */
export type Sticky =
  /** The value of this header. */
  | { readonly header: string }
  /** The value of this cookie. */
  | { readonly cookie: string };

/** A handler process, and its share of the requests. */
export interface HandlerTarget {
  readonly weight: number;
  readonly version: number;
  readonly instance: Instance;
}

export interface Instance {
  /** Unique on this machine for the life of the gateway. */
  readonly id: number;
  /** Its Unix socket; the path may lead into the handler's sandbox. */
  readonly socket: string;
  readonly takes: Takes;
}

/** What a handler takes besides whole requests. */
export type Takes =
  /** Nothing else: as those do that were made with an earlier SDK. */
  | 'whole'
  /** Requests whose body follows. */
  | 'streams'
  | 'websockets';

/** A message to the front. */
export type ToFront =
  /** The first message. */
  | ({ readonly type: 'configure' } & Settings)
  | {
      readonly type: 'apply';
      readonly seq: number;
      readonly upserts: readonly EndpointMessage[];
      readonly removals: readonly string[];
      /** Parts of policies of these endpoints, as JSON by their digests. */
      readonly policies?: Texts;
    }
  /** Use these certificates from now on, and no others. */
  | {
      readonly type: 'certificates';
      readonly seq: number;
      readonly certificates: readonly Certificate[];
    }
  /** Answer these challenges of ACME servers from now on, and no others. */
  | {
      readonly type: 'challenges';
      readonly seq: number;
      readonly http: readonly Challenge[];
      /** Shown to servers that ask by TLS-ALPN-01. */
      readonly tls: readonly Certificate[];
    }
  /** Open the ports: all endpoints have been applied. */
  | {
      readonly type: 'listen';
      readonly seq: number;
    }
  /** Answered when no request is in flight in a replaced instance. */
  | {
      readonly type: 'drain';
      readonly seq: number;
      readonly instanceId: number;
    }
  | {
      readonly type: 'metrics';
      readonly seq: number;
    }
  /** Asks for how long endpoints have had no request. */
  | {
      readonly type: 'idle';
      readonly seq: number;
      readonly endpointIds: readonly string[];
    }
  /** A request of the gateway itself to an endpoint, whatever its host, and whether it is enabled. */
  | {
      readonly type: 'request';
      readonly seq: number;
      readonly endpointId: string;
      /** The request line and the headers, as HTTP/1.1, with the empty line behind them. */
      readonly head: string;
      /** The body, in base64. */
      readonly body: string;
      /** How often the handler was asked, this time included. */
      readonly attempt?: number;
    }
  /** Where a request of a client would go. */
  | {
      readonly type: 'route';
      readonly seq: number;
      readonly host: string;
      readonly method: string;
      readonly path: string;
    }
  /** Counts that a front has asked for with `Take`. It has no answer. */
  | {
      readonly type: 'taken';
      readonly id: number;
      /**
       * The counts of these rules. Null: they cannot be counted now. Null for a rule: this gateway has to count by
       * itself.
       */
      readonly taken: readonly (RateStatus | null)[] | null;
    }
  /** This gateway lets its part of each limit of rates through. */
  | {
      readonly type: 'share';
      /** How many gateways count by themselves. */
      readonly gateways: number;
      /** The place of this gateway among them, from 0. */
      readonly place: number;
    }
  /** From now on another front counts requests. The answer has the counts. */
  | {
      readonly type: 'handOver';
      readonly seq: number;
    }
  /** Count requests, from what another front has handed over. */
  | {
      readonly type: 'adopt';
      readonly counts: string;
    }
  /** Count a request for a front that has handed its counts over. */
  | {
      readonly type: 'count';
      readonly seq: number;
      readonly rules: readonly RateDescriptor[];
    }
  /** Finish what is in flight, take nothing new, and exit. */
  | {
      readonly type: 'stop';
      readonly seq: number;
    };

/** The settings of a front. */
export interface Settings {
  readonly threads: number;
  /** Longest body of a request, bytes. */
  readonly bodyLimit: number;
  /** Bytes of bodies that may be in memory at a time. */
  readonly memoryBytes: number;
  /** Bytes of what is made of policies: schemas, patterns, tokens that were verified. */
  readonly policyMemoryBytes?: number;
  readonly connectionsLimit: number;
  readonly headTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly stallTimeoutMs: number;
  readonly minBytesPerSecond: number;
  /** How long a stream may go on when its handler is replaced or stopped, or the front stops. */
  readonly streamDrainMs: number;
  /** Networks whose `X-Forwarded-For` and `Forwarded` are believed. */
  readonly trustedProxies: readonly string[];
  /** Whether the supervisor wants to know of every request. */
  readonly logsRequests: boolean;
  /** Entries of the log for requests of one endpoint that do not fail. */
  readonly logRequestsPerSecond: number;
  /** Intervals of figures begin at multiples of this, since 1970. A minute is a multiple of it. */
  readonly figuresEverySeconds: number;
  /** Whether machines count rates together: the supervisor does it. */
  readonly sharesRates?: boolean;
  /** All fronts with the same seed know callers by the same numbers. It is random, and known to no others. */
  readonly rateSeed?: string;
  /** Which traces are exported; null: none. */
  readonly traces: Sampling | null;
  /** Requests without TLS are sent to this port; null: they are served. */
  readonly redirectPort?: number | null;
  /** How long browsers that have used TLS are to use nothing else; 0 for not at all. */
  readonly strictTransportSeconds?: number;
}

/** A request was counted by a rule. */
export interface RateStatus {
  readonly isAdmitted: boolean;
  /** Requests in this window, with this one. */
  readonly taken: number;
  /** The time until the window ends, milliseconds. */
  readonly endsMs: number;
}

/** A rule by which a request is to be counted. */
export interface RateDescriptor {
  /** The name of the caller and the rule together. */
  readonly key: string;
  /** The name of the rule. */
  readonly rule: string;
  readonly requests: number;
  readonly windowMs: number;
}

/** Which traces are exported. */
export interface Sampling {
  /** Traces that the client has sampled, where it has one. */
  readonly parentBased: boolean;
  /** The part of all other traces, from 0 to 1. */
  readonly ratio: number;
}

/** A message from the front. */
export type FromFront =
  | ({ readonly type: 'done' } & FrontAnswer)
  /** A request to this instance exceeded its deadline. */
  | {
      readonly type: 'deadlineExceeded';
      readonly endpointId: string;
      readonly instanceId: number;
    }
  /** The connection to this instance, which should serve, broke or could not be made. */
  | {
      readonly type: 'connectionLost';
      readonly endpointId: string;
      readonly instanceId: number;
      readonly reason: string;
    }
  /**
   * A request waits for a handler of an endpoint that is asleep. It is told once for each state of the
   * endpoint.
   */
  | {
      readonly type: 'wake';
      readonly endpointId: string;
    }
  /** A token has a key that is not among those of its issuer; told once in a while. */
  | {
      readonly type: 'unknownKey';
      readonly endpointId: string;
    }
  /** Count a request of a caller, by one rule after the other until one has no more; see `Taken`. */
  | {
      readonly type: 'take';
      readonly id: number;
      readonly rules: readonly RateDescriptor[];
    }
  /** Requests that handlers answered since the last such message. */
  | {
      readonly type: 'handled';
      readonly requests: number;
    }
  /** A finished request. */
  | ({ readonly type: 'request' } & RequestEntry)
  /** Finished requests of an endpoint that had no entry, since the last such message. */
  | {
      readonly type: 'leftOut';
      readonly endpointId: string;
      readonly requests: number;
      /** How many of them have failed: the supervisor did not keep up. */
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
      readonly level: Level;
      readonly fields: Readonly<Record<string, unknown>>;
      readonly message: string;
    };

/** The finished requests of an endpoint in an interval. */
export interface EndpointInterval {
  readonly id: string;
  /** The most requests at a time. */
  readonly inFlight: number;
  readonly versions: readonly VersionInterval[];
}

/** The finished requests that one version answered. */
export interface VersionInterval {
  /** The version; none where no handler got the requests. */
  readonly version?: number;
  /** Requests by class of status: at 2 those with 200 to 299, at 0 those of no class. */
  readonly statuses: readonly number[];
  /**
   * Numbers of buckets of durations (`durations.rs`, `src/model/durations.ts`); `counts` has the requests of
   * each.
   */
  readonly buckets: readonly number[];
  readonly counts: readonly number[];
}

/** A finished request, for the log. */
export interface RequestEntry {
  readonly endpointId: string;
  readonly requestId: string;
  /** The id of the trace as in W3C Trace Context, 32 digits. */
  readonly traceId: string;
  readonly span?: EntrySpan;
  readonly method: string;
  readonly route: string;
  /** The path without the query. */
  readonly path: string;
  readonly status: number;
  readonly ms: number;
  /** The length of the body of the response. */
  readonly bytes: number;
  readonly clientIp: string;
  readonly scheme: string;
  /** The version of the handler that it was sent to. */
  readonly version?: number;
  /** Why the front answers instead of the handler, or why the response has no end. */
  readonly error?: string;
  /** The policy that has refused it. */
  readonly policy?: string;
  /** Who sent it, as a policy has found. */
  readonly subject?: string;
  readonly keyLabel?: string;
  /** What a policy has found wrong with a request that it let through. */
  readonly reported?: string;
  /** False for one that is only to be in the supervisor's own log. */
  readonly isKept: boolean;
}

/** What the gateway has done for a request, as a part of a trace. */
export interface EntrySpan {
  /** 16 digits. */
  readonly id: string;
  /** The id of the part of the client, if it has one. */
  readonly parentId?: string;
  /** Whether it is to be exported. */
  readonly isRecorded: boolean;
  /** Microseconds since 1970. */
  readonly endedUs: number;
}

/** The answer to a message of the supervisor. */
export interface FrontAnswer {
  readonly seq: number;
  readonly error?: string;
  readonly metrics?: Metrics;
  /** Milliseconds, in the order in which they were asked for; null for an endpoint that is not known. */
  readonly idle?: readonly (number | null)[];
  readonly response?: Response;
  readonly routed?: RouteAnswer;
  /** See `HandOver`. */
  readonly counts?: string;
  /** The counts of the rules, as many as were counted. */
  readonly taken?: readonly (RateStatus | null)[];
}

/** The response to a request of the gateway itself. */
export interface Response {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  /** The body, in base64. */
  readonly body: string;
  readonly requestId: string;
  readonly durationMs: number;
  /** Why the front answers instead of a handler. */
  readonly error?: string;
}

/** Where a request would go. */
export interface RouteAnswer {
  readonly found?: Match;
  /** What it would hit without that endpoint. */
  readonly next?: Match;
  /** Where there is no endpoint, one that would match if it were not disabled. */
  readonly disabled?: Match;
  /** Where there is no endpoint, the methods that the path has. */
  readonly allow: readonly string[];
  /** Why such a request would be answered with 400. */
  readonly refusal?: string;
}

export interface Match {
  readonly endpointId: string;
  readonly params: Readonly<Record<string, string>>;
}

export type Level = 'warn';

/** The figures of a front, from which the supervisor makes metrics. */
export interface Metrics {
  /** Connections of clients that are open. */
  readonly connections: number;
  /** Requests that handlers are working on. */
  readonly requestsInFlight: number;
  /** Requests that belong to no endpoint, by status. */
  readonly refused: Readonly<Record<string, number>>;
  /** Requests that policies answered, by their names. */
  readonly policies: Readonly<Record<string, number>>;
  /** Requests that policies have found something wrong with and let through, by their names. */
  readonly reported: Readonly<Record<string, number>>;
  /** Endpoints that have had requests. */
  readonly endpoints: readonly EndpointMetrics[];
}

export interface EndpointMetrics {
  readonly id: string;
  /** Finished requests by class of status: at 2 those with 200 to 299. */
  readonly statuses: readonly number[];
  /** Finished requests by duration, in the buckets of `figures::BOUNDS`, and at last those above. */
  readonly buckets: readonly number[];
  /** Duration of all together. */
  readonly seconds: number;
}

/** Texts of parts of policies by their digests. */
export type Texts = Readonly<Record<string, string>>;

/** Digests of the parts that an endpoint has, by the names of policies. */
export type Digests = Readonly<Record<string, string>>;

/** The policies of an endpoint. */
export type CompiledPolicies = {
  /** The digest of all the rest. */
  readonly digest: string;
  /** Digests of texts that come with the message, or that other endpoints of the domain have already. */
  readonly parts?: Digests;
  /** Why nobody can be let in: a secret is missing, for example. */
  readonly broken?: string;
  readonly body_limit?: number;
} & WholePolicies;

/** Policies that are no parts: a supervisor of the version before sends them so. */
export interface WholePolicies {
  readonly cors?: CompiledCors;
  readonly ip?: CompiledNetworks;
  readonly rate_limits?: readonly CompiledRule[];
  readonly auth?: CompiledAuth;
  readonly headers?: CompiledHeaders;
  readonly redirect?: Redirect;
  readonly maintenance?: Maintenance;
  readonly compress?: CompiledCompress;
  readonly validate?: string;
  readonly websocket?: Sockets;
}

export interface CompiledCors {
  readonly origins: Origins;
  readonly methods?: readonly string[];
  readonly headers?: readonly string[];
  readonly expose?: readonly string[];
  readonly credentials?: boolean;
  readonly max_age_seconds?: number;
}

export interface CompiledNetworks {
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
}

/** What becomes of requests that cannot be counted. */
export type OnFailure = 'open' | 'closed';

export interface CompiledRule {
  /** Which counts it uses: those of where it is set. */
  readonly id: string;
  readonly requests: number;
  readonly window_seconds: number;
  readonly by: string;
  readonly on_failure?: OnFailure;
}

export interface CompiledAuth {
  readonly api_key?: CompiledApiKeys;
  readonly basic?: CompiledBasic;
  readonly hmac?: CompiledHmac;
  readonly jwt?: CompiledJwt;
}

export interface CompiledApiKeys {
  readonly header: string;
  readonly keys: readonly CompiledApiKey[];
}

/** A key of a caller. */
export interface CompiledApiKey {
  readonly id: string;
  readonly label: string;
  /** SHA-256, in hexadecimal digits. */
  readonly hash: string;
  /** Seconds since 1970; null: it does not expire. */
  readonly expires_at: number | null;
}

export interface CompiledBasic {
  readonly realm: string;
  readonly users: readonly CompiledUser[];
}

export interface CompiledUser {
  readonly name: string;
  /** SHA-256 of the password, in hexadecimal digits. */
  readonly hash: string;
}

export type HmacStyle = 'github' | 'stripe';

export interface CompiledHmac {
  readonly style: HmacStyle;
  readonly secret: string;
  readonly tolerance_seconds: number;
}

export interface CompiledJwt {
  readonly issuer: string;
  readonly audience: readonly string[];
  readonly keys: readonly CompiledPublicKey[];
  readonly jwks_url?: string;
  readonly algorithms?: readonly string[];
  readonly clock_skew_seconds?: number;
  readonly required_claims?: Readonly<Record<string, unknown>>;
  readonly scopes?: readonly string[];
}

export interface CompiledPublicKey {
  readonly kid?: string;
  readonly kty: string;
  readonly alg?: string;
  readonly n?: string;
  readonly e?: string;
  readonly crv?: string;
  readonly x?: string;
  readonly y?: string;
}

export interface CompiledHeaders {
  readonly request?: CompiledChanges;
  readonly response?: CompiledChanges;
  readonly security_headers?: boolean;
}

export interface CompiledChanges {
  readonly remove?: readonly string[];
  readonly set?: Readonly<Record<string, string>>;
  readonly add?: Readonly<Record<string, string>>;
  readonly allow?: readonly string[];
}

export interface Redirect {
  readonly to: string;
  readonly status?: number;
  readonly keep_path?: boolean;
}

export interface Maintenance {
  readonly message?: string;
  readonly retry_after_seconds?: number;
}

export interface CompiledCompress {
  readonly min_bytes?: number;
  readonly algorithms?: readonly string[];
}

/** What may be sent over WebSockets, and from which pages they are opened. */
export interface Sockets {
  /** Pages that open them, besides those of the same host. */
  readonly allowed_origins?: Origins;
  /** Longest message, bytes. */
  readonly max_message_bytes?: number;
  /** Messages of a client in a second; any number without it. */
  readonly messages_per_second?: number;
}

export type Origins = readonly string[];

/** The certificate of a host. */
export interface Certificate {
  readonly host: string;
  /** Its own, and those up to one that clients know; PEM. */
  readonly chain: string;
  /** PEM. */
  readonly key: string;
}
