/** Public keys of issuers of tokens (RFC 7517), and how they sign. */
import { createPublicKey, type JsonWebKey } from 'node:crypto';

/** How tokens may be signed: with keys of which only the issuer has the private part. */
export const JWT_ALGORITHMS = [
  ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const),
  ...(['ES256', 'ES384', 'EdDSA'] as const),
] as const;

/** The members of a public key. */
const MEMBERS = {
  RSA: ['n', 'e'],
  EC: ['crv', 'x', 'y'],
  OKP: ['crv', 'x'],
} as const;
const CURVES: Readonly<Record<string, readonly string[]>> = { EC: ['P-256', 'P-384'], OKP: ['Ed25519'] };
const MAX_KEYS = 50;
const [MIN_RSA_BITS, MAX_RSA_BITS] = [2048, 8192];
const ID_LENGTH = 512;

/** A key as the front gets it. */
export interface PublicKey {
  readonly kid?: string;
  readonly kty: string;
  readonly alg?: string;
  readonly [member: string]: string | undefined;
}

/** What is wrong with a key; undefined when it can verify signatures. */
export function problemOfKey(key: Readonly<Record<string, unknown>>): string | undefined {
  const { kty } = key;
  const members = MEMBERS[kty as keyof typeof MEMBERS] as readonly string[] | undefined;
  if (typeof kty !== 'string' || !members) return 'has to be a public key of kty RSA, EC or OKP';
  if ('d' in key || 'k' in key) return 'is a private key; only its public part belongs here';
  if (members.some((name) => typeof key[name] !== 'string')) return `needs ${members.join(', ')}`;
  if (CURVES[kty] && !CURVES[kty]?.includes(String(key['crv'])))
    return `needs a crv of ${CURVES[kty]?.join(', ')}`;
  for (const name of ['kid', 'alg', 'use'])
    if (key[name] !== undefined && (typeof key[name] !== 'string' || key[name].length > ID_LENGTH))
      return `${name} has to be a text of at most ${ID_LENGTH} characters`;
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key: key as JsonWebKey, format: 'jwk' });
    const bits = asymmetricKeyDetails?.modulusLength;
    if (bits !== undefined && (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS))
      return `has ${bits} bits; RSA keys need ${MIN_RSA_BITS} to ${MAX_RSA_BITS}`;
  } catch {
    return 'is not a valid key';
  }
  return undefined;
}

/** Keys that issuers publish for other purposes, or of kinds that are not used here, are left out. */
export function usableKeys(keys: readonly unknown[]): PublicKey[] {
  return keys
    .filter(
      (key): key is Readonly<Record<string, unknown>> =>
        typeof key === 'object' && key !== null && !Array.isArray(key),
    )
    .filter((key) => (key['use'] === undefined || key['use'] === 'sig') && problemOfKey(key) === undefined)
    .slice(0, MAX_KEYS)
    .map(publicPart);
}

function publicPart(key: Readonly<Record<string, unknown>>): PublicKey {
  const names = ['kty', 'kid', 'alg', ...MEMBERS[key['kty'] as keyof typeof MEMBERS]];
  return Object.fromEntries(
    names.flatMap((name) => (key[name] === undefined ? [] : [[name, String(key[name])]])),
  ) as unknown as PublicKey;
}
