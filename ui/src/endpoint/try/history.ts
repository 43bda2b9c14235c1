/**
 * The last requests that were tried with an endpoint, in this browser. What looks like a secret is left out: values of
 * headers, parameters and members of JSON whose names say so, and bodies that are not JSON.
 */
import { me } from '../../api/session.js';
import type { Pair, Trial } from './trial.js';

export interface PastTrial {
  readonly at: string;
  readonly version: number | null;
  readonly status: number;
  readonly trial: Trial;
}

const MOST_OF_ENDPOINT = 20;
const MOST_ENDPOINTS = 50;
const MOST_CHARACTERS = 16_384;
const PREFIX = 'edge-calls:';
const SECRET = /auth|token|secret|passw|key|cookie|session|signature|credential|bearer|jwt|otp|\bpin\b/i;

export const looksSecret = (text: string): boolean => SECRET.test(text);

export function pastTrials(endpointId: string): readonly PastTrial[] {
  try {
    return JSON.parse(localStorage.getItem(keyOf(endpointId)) ?? '[]') as PastTrial[];
  } catch {
    return [];
  }
}

/** Adds a request; the oldest ones are forgotten. */
export function remember(endpointId: string, past: PastTrial): void {
  const kept = { ...past, trial: withoutSecrets(past.trial) };
  const text = JSON.stringify(kept.trial);
  if (text.length > MOST_CHARACTERS) return;
  const earlier = pastTrials(endpointId).filter(
    ({ trial, version }) => version !== past.version || JSON.stringify(trial) !== text,
  );
  forgetOldEndpoints();
  try {
    localStorage.setItem(keyOf(endpointId), JSON.stringify([kept, ...earlier].slice(0, MOST_OF_ENDPOINT)));
  } catch {
    // The browser has no more room: what is tried works without a history.
    forget(endpointId);
  }
}

export function forget(endpointId: string): void {
  localStorage.removeItem(keyOf(endpointId));
}

// Who signs in next in this browser does not see it.
const keyOf = (endpointId: string) => `${PREFIX}${me.value?.user?.id ?? ''}:${endpointId}`;

function forgetOldEndpoints(): void {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
  for (const key of keys.slice(0, Math.max(0, keys.length - MOST_ENDPOINTS))) localStorage.removeItem(key);
}

export function withoutSecrets({ path, query, headers, body }: Trial): Trial {
  const safe = Object.entries(path).map(([name, value]) => [name, SECRET.test(name) ? '' : value]);
  return {
    path: Object.fromEntries(safe),
    query: query.filter(isNamed).map(withoutSecret),
    headers: headers.filter(isNamed).map(withoutSecret),
    body: safeBody(body),
  };
}

const isNamed = ({ name }: Pair): boolean => name !== '';

const withoutSecret = ({ name, value }: Pair): Pair => ({ name, value: SECRET.test(name) ? '' : value });

function safeBody(body: string): string {
  try {
    const value: unknown = JSON.parse(body, (name, member: unknown) => (SECRET.test(name) ? '' : member));
    return JSON.stringify(value, null, 2);
  } catch {
    return '';
  }
}
