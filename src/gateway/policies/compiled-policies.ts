/**
 * Policies on their way to the front, whose types are in `src/contracts/front.ts`. Those that can be large are parts:
 * what endpoints of a domain have in common is in memory once, and in a message once.
 */
import { createHash } from 'node:crypto';
import type { CompiledPolicies as SentPolicies } from '../../contracts/front.js';
import { weightOf } from '../../model/policies/room.js';

/** A policy, or a way of `auth`, as JSON. */
export interface PolicyPart {
  /** Digest of the text. */
  readonly digest: string;
  readonly text: string;
  /** About what it takes in memory, bytes. */
  readonly weight: number;
}

/** Parts by their names: those of `WholePolicies`, but the members of `CompiledAuth` instead of `auth`. */
export type PolicyParts = Readonly<Record<string, PolicyPart>>;

export interface CompiledPolicies {
  /** Digest of all that the front gets. */
  readonly digest: string;
  readonly parts: PolicyParts;
  /** Why nobody can be let in: a secret is missing, for example. */
  readonly broken?: string;
  readonly body_limit?: number;
  /** It is one of the limits that the front gets. */
  readonly timeout?: number;
  /** Where the issuer of tokens publishes its keys. */
  readonly jwks_url?: string;
}

/** Policies in a message, which has the texts of their parts beside them. */
export type NamedPolicies = Pick<SentPolicies, 'digest' | 'broken' | 'body_limit'> &
  Required<Pick<SentPolicies, 'parts'>>;

/**
 * A part of its value, or of a text that the front keeps as it is.
 * @param before one that is taken when it has the same text: it has its digest already
 */
export function partOf(value: unknown, before?: PolicyPart): PolicyPart {
  const isText = typeof value === 'string';
  const text = isText ? value : JSON.stringify(value);
  if (text === before?.text) return before;
  return {
    digest: sha256(text).slice(0, 32),
    text,
    weight: isText ? Buffer.byteLength(text) : weightOf(text),
  };
}

export function withDigest(policies: Omit<CompiledPolicies, 'digest'>): CompiledPolicies {
  return { digest: sha256(JSON.stringify(named(policies))).slice(0, 32), ...policies };
}

/** What a message has of policies, but for the digest. */
export function named({
  parts,
  broken,
  body_limit,
}: Omit<CompiledPolicies, 'digest'>): Omit<NamedPolicies, 'digest'> {
  const names = Object.keys(parts).sort();
  return {
    parts: Object.fromEntries(names.map((name) => [name, parts[name]?.digest ?? ''])),
    ...(broken !== undefined && { broken }),
    ...(body_limit !== undefined && { body_limit }),
  };
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
