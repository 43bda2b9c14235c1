/** Passwords, of which only memory-hard digests (Argon2id) are kept. */
import { hash, verify } from '@node-rs/argon2';

/** The parameters that OWASP recommends: 19 MiB, two passes, one lane. Argon2id is the default of the library. */
const OPTIONS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

/** What is checked where there is no such account, so that both cases do the same work. */
let absent: Promise<string> | undefined;

export function hashPassword(password: string): Promise<string> {
  return hash(password, OPTIONS);
}

/**
 * What a given password is compared with: for an account without one, or none at all, the digest of a password that
 * nobody knows, with the same parameters.
 */
export async function comparedHash(stored: string | null | undefined): Promise<string> {
  absent ??= hashPassword(crypto.randomUUID());
  return stored ?? absent;
}

/** Whether it is the password of the account. */
export async function isPassword(stored: string | null | undefined, password: string): Promise<boolean> {
  const matches = await verify(await comparedHash(stored), password);
  return matches && stored != null;
}
