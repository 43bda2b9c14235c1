/** Encryption of secrets at rest: AES-256-GCM under a key derived from SECRET_KEY. */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, scryptSync } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, ConfigError } from '../config.js';
import { toError } from '../errors.js';
import { isErrno } from '../util/errno.js';

/** Encrypts texts for storage, and signs. */
export interface SecretBox {
  seal(text: string): string;
  /** @throws SecretKeyError when the text was sealed with another key, or was changed. */
  open(sealed: string): string;
  /** A signature of a text that only holders of the key can make. Signatures for different purposes are independent. */
  sign(purpose: string, text: string): string;
}

/** A sealed text cannot be decrypted with this key. */
export class SecretKeyError extends Error {
  override readonly name = 'SecretKeyError';
}

const MIN_KEY_LENGTH = 16;
const IV_LENGTH = 12;
const TAG_LENGTH = 16;
/** The version of the layout, so that it can be changed later. */
const VERSION = 'v1:';
/** A constant, because all machines must derive the same key from the same SECRET_KEY. */
const SALT = 'edge-gateway secret box v1';

/**
 * Makes the box for a key of at least 16 characters. The key derivation is slow on purpose: call it once per process.
 */
export function createSecretBox(secretKey: string): SecretBox {
  const key = scryptSync(secretKey, SALT, 32);
  return {
    seal(text) {
      const iv = randomBytes(IV_LENGTH);
      const cipher = createCipheriv('aes-256-gcm', key, iv);
      const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return VERSION + Buffer.concat([iv, cipher.getAuthTag(), encrypted]).toString('base64');
    },
    open(sealed) {
      if (!sealed.startsWith(VERSION)) throw new SecretKeyError('The sealed text has an unknown layout');
      const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64');
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_LENGTH), {
          authTagLength: TAG_LENGTH,
        });
        decipher.setAuthTag(bytes.subarray(IV_LENGTH, IV_LENGTH + TAG_LENGTH));
        const opened = [decipher.update(bytes.subarray(IV_LENGTH + TAG_LENGTH)), decipher.final()];
        return Buffer.concat(opened).toString('utf8');
      } catch (thrown) {
        throw new SecretKeyError('The sealed text does not open: it was sealed with another SECRET_KEY', {
          cause: thrown,
        });
      }
    },
    sign(purpose, text) {
      const purposeKey = createHmac('sha256', key).update(purpose).digest();
      return createHmac('sha256', purposeKey).update(text).digest('base64url');
    },
  };
}

/**
 * The box of this installation: its key is SECRET_KEY, or the key file in DATA_DIR, which the first process makes.
 * @throws ConfigError when the key is too short
 */
export async function loadSecretBox(config: Pick<Config, 'SECRET_KEY' | 'DATA_DIR'>): Promise<SecretBox> {
  if (config.SECRET_KEY !== undefined) {
    return createSecretBox(longEnough(config.SECRET_KEY, 'SECRET_KEY'));
  }
  const path = join(config.DATA_DIR, 'secret.key');
  const key = (await readKey(path)) ?? (await makeKey(config.DATA_DIR, path));
  return createSecretBox(longEnough(key, path));
}

function longEnough(key: string, source: string): string {
  if (key.length < MIN_KEY_LENGTH) {
    throw new ConfigError(`${source}: must have at least ${MIN_KEY_LENGTH} characters`);
  }
  return key;
}

async function readKey(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (thrown) {
    if (isErrno(thrown, 'ENOENT')) return undefined;
    throw toError(thrown);
  }
}

/** Makes the key file atomically: of several processes that start at once, one wins and all read its key. */
async function makeKey(folder: string, path: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const draft = `${path}.${process.pid}.${randomBytes(6).toString('hex')}`;
  await writeFile(draft, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
  try {
    await link(draft, path);
  } catch (thrown) {
    if (!isErrno(thrown, 'EEXIST')) throw toError(thrown);
  } finally {
    await rm(draft, { force: true });
  }
  return (await readFile(path, 'utf8')).trim();
}
