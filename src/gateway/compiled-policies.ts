/** Policies as the front gets them; the other end is `rust/front/src/policies/compiled.rs`. */
import { createHash } from 'node:crypto';
import type { PublicKey } from '../model/policies/key-set.js';
import type {
  CompressPolicy,
  CorsPolicy,
  HeadersPolicy,
  IpPolicy,
  JwtPolicy,
  MaintenancePolicy,
  RedirectPolicy,
  WebSocketPolicy,
} from '../model/policies/policies.js';

/** A key of a caller. */
export interface CompiledKey {
  readonly id: string;
  readonly label: string;
  /** SHA-256, in hexadecimal digits. */
  readonly hash: string;
  /** Seconds since 1970. */
  readonly expires_at: number | null;
}

export interface CompiledAuth {
  readonly api_key?: { readonly header: string; readonly keys: readonly CompiledKey[] };
  readonly basic?: {
    readonly realm: string;
    readonly users: readonly { readonly name: string; readonly hash: string }[];
  };
  readonly hmac?: {
    readonly style: 'github' | 'stripe';
    readonly secret: string;
    readonly tolerance_seconds: number;
  };
  readonly jwt?: Omit<JwtPolicy, 'jwks' | 'audience'> & {
    readonly audience: readonly string[];
    readonly keys: readonly PublicKey[];
  };
}

export interface CompiledRule {
  /** Which counts it uses: those of where it is set. */
  readonly id: string;
  readonly requests: number;
  readonly window_seconds: number;
  readonly by: string;
  readonly on_failure?: 'open' | 'closed';
}

export interface CompiledPolicies {
  /** Of all the rest. */
  readonly digest: string;
  readonly cors?: CorsPolicy;
  readonly ip?: IpPolicy;
  readonly rate_limits?: readonly CompiledRule[];
  readonly auth?: CompiledAuth;
  /** Why nobody can be let in: a secret is missing, for example. */
  readonly broken?: string;
  readonly headers?: HeadersPolicy;
  readonly redirect?: RedirectPolicy;
  readonly maintenance?: MaintenancePolicy;
  readonly body_limit?: number;
  readonly timeout?: number;
  readonly compress?: CompressPolicy;
  /** A `CompiledValidate` as JSON: it may be large, and the front reads it when it needs it. */
  readonly validate?: string;
  readonly websocket?: WebSocketPolicy;
}

export function withDigest(policies: Omit<CompiledPolicies, 'digest'>): CompiledPolicies {
  const digest = createHash('sha256').update(JSON.stringify(policies)).digest('hex').slice(0, 32);
  return { digest, ...policies };
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
