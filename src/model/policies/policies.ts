/**
 * Policies: what the gateway does with a request before a handler gets it, and with its answer. A domain, a collection
 * and an endpoint can each have some; of each policy the nearest counts. `checks.ts` has the rules that no schema says.
 */
import type { ValidatePolicy } from './validate.js';

/** Which pages of other origins may call an endpoint. */
export interface CorsPolicy {
  readonly origins: readonly string[];
  readonly methods?: readonly string[];
  readonly headers?: readonly string[];
  readonly expose?: readonly string[];
  readonly credentials?: boolean;
  readonly max_age_seconds?: number;
}

/** Networks whose requests are served. */
export interface IpPolicy {
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
}

/** So many requests of one caller in a window of time. */
export interface RateLimitPolicy {
  readonly requests: number;
  readonly window_seconds: number;
  /** `address`, `key`, `subject` or `header:<name>`. */
  readonly by: string;
  /** What becomes of requests while machines cannot count together. */
  readonly on_failure?: 'open' | 'closed';
}

/** Signed tokens of an issuer. */
export interface JwtPolicy {
  readonly issuer: string;
  readonly audience: string | readonly string[];
  /** The keys of the issuer. */
  readonly jwks?: KeySet;
  /** Where the issuer publishes them. */
  readonly jwks_url?: string;
  readonly algorithms?: readonly string[];
  readonly clock_skew_seconds?: number;
  readonly required_claims?: Readonly<Record<string, string | number | boolean | null>>;
  readonly scopes?: readonly string[];
}

/** JSON Web Key Set (RFC 7517). */
export interface KeySet {
  readonly keys: readonly Readonly<Record<string, unknown>>[];
}

/** How callers show who they are: one of these ways suffices. */
export interface AuthPolicy {
  readonly api_key?: { readonly header?: string };
  /** Names of users, and of the secrets that are their passwords. */
  readonly basic?: { readonly users: Readonly<Record<string, string>>; readonly realm?: string };
  /** Signatures of bodies; `secret` is the name of a secret. */
  readonly hmac?: {
    readonly style: 'github' | 'stripe';
    readonly secret: string;
    readonly tolerance_seconds?: number;
  };
  readonly jwt?: JwtPolicy;
}

/** Changes of headers, in this order: remove, set, add. */
export interface HeaderChanges {
  readonly remove?: readonly string[];
  readonly set?: Readonly<Record<string, string>>;
  readonly add?: Readonly<Record<string, string>>;
}

/**
 * Response headers by which one answer decides about all of its host, in the browser that gets it. The front leaves
 * them out (`rust/front/src/upstream/response_head.rs`).
 */
export const HOST_HEADERS = [
  ...(['Accept-CH', 'Alt-Svc', 'Clear-Site-Data', 'Critical-CH', 'NEL', 'Origin-Agent-Cluster'] as const),
  ...(['Public-Key-Pins', 'Report-To', 'Secure-Session-Registration', 'Service-Worker-Allowed'] as const),
  'Set-Login',
] as const;
type HostHeader = (typeof HOST_HEADERS)[number];

export interface HeadersPolicy {
  readonly request?: HeaderChanges;
  readonly response?: HeaderChanges & {
    /** What handlers may send although it decides about the whole host. */
    readonly allow?: readonly HostHeader[];
  };
  readonly security_headers?: boolean;
}

export interface RedirectPolicy {
  readonly to: string;
  readonly status?: number;
  readonly keep_path?: boolean;
}

export interface MaintenancePolicy {
  readonly message?: string;
  readonly retry_after_seconds?: number;
}

export interface CompressPolicy {
  readonly min_bytes?: number;
  readonly algorithms?: readonly ('br' | 'gzip' | 'zstd')[];
}

/** Connections of WebSockets; without it, pages of the same host may open them. */
export interface WebSocketPolicy {
  /** Besides the own host: exact, `*`, or `https://*.example.com`. */
  readonly allowed_origins?: readonly string[];
  /** Longest message, bytes; a longer one closes with 1009. */
  readonly max_message_bytes?: number;
  /** Most messages of one client per second; more of them close the connection with 1008. */
  readonly messages_per_second?: number;
}

/** All policies by name. Null: none here, whatever is set farther away. */
export interface Policies {
  readonly cors?: CorsPolicy | null;
  readonly ip?: IpPolicy | null;
  readonly rate_limit?: RateLimitPolicy | readonly RateLimitPolicy[] | null;
  readonly auth?: AuthPolicy | null;
  readonly headers?: HeadersPolicy | null;
  readonly redirect?: RedirectPolicy | null;
  readonly maintenance?: MaintenancePolicy | null;
  /** Bytes. */
  readonly body_limit?: number | null;
  /** Milliseconds. */
  readonly timeout?: number | null;
  readonly compress?: CompressPolicy | null;
  readonly validate?: ValidatePolicy | null;
  readonly websocket?: WebSocketPolicy | null;
}

export type PolicyName = keyof Policies;
