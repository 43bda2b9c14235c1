/**
 * Tokens of programs and cookies of sessions. A token is `egw_`, 30 random letters and digits, and a checksum of six,
 * so that scanners for secrets can tell it from other text. Stored are only digests: both are random and long, so that
 * these need not be slow.
 */
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LETTERS = 30;
const TOKEN = /^egw_([0-9A-Za-z]{30})([0-9A-Za-z]{6})$/;

export function newToken(): string {
  const random = Array.from({ length: RANDOM_LETTERS }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  return `egw_${random}${checksum(random)}`;
}

/** Whether a text can be a token: all others need not be looked up. */
export function isToken(text: string): boolean {
  const [, random, sum] = TOKEN.exec(text) ?? [];
  return random !== undefined && checksum(random) === sum;
}

export function newSessionSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** What is stored of a token or a session. */
export function digestOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

function checksum(text: string): string {
  let rest = crc32(text);
  let letters = '';
  for (let at = 0; at < 6; at++) {
    letters = LETTERS[rest % LETTERS.length] + letters;
    rest = Math.floor(rest / LETTERS.length);
  }
  return letters;
}
