/**
 * Encryption of secrets at rest: AES-256-GCM under a key derived from SECRET_KEY. While that is rotated, values of a
 * second key are accepted beside those of the first, which seals and signs.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, scryptSync } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, ConfigError } from '../config.js';
import { toError } from '../errors.js';
import { isErrno } from '../util/errno.js';

/** Encrypts texts for storage, and signs. */
export interface SecretBox {
  /** The ids of the keys that are accepted; the first one seals and signs. */
  readonly keyIds: readonly [string, ...string[]];
  seal(text: string): string;
  /** @throws SecretKeyError when the text was sealed with a key that is not accepted, or was changed. */
  open(sealed: string): string;
  /** A signature of a text that only holders of the key can make. Signatures for different purposes are independent. */
  sign(purpose: string, text: string): string;
  /** The signatures of a text by all accepted keys. */
  signatures(purpose: string, text: string): readonly string[];
}

/** A sealed text cannot be decrypted with the keys that are accepted. */
export class SecretKeyError extends Error {
  override readonly name = 'SecretKeyError';
}

/** A derived key. */
interface Key {
  readonly id: string;
  readonly bytes: Buffer;
}

const MIN_KEY_LENGTH = 16;
const IV_LENGTH = 12;
const TAG_LENGTH = 16;
/** Layouts: the first one does not say which key sealed it, the present one does: `v2:<id of the key>:<base64>`. */
const UNNAMED = 'v1:';
const NAMED = 'v2:';
const NAMED_TEXT = /^v2:([0-9a-f]{12}):(.*)$/s;
/** A constant, because all machines must derive the same key from the same SECRET_KEY. */
const SALT = 'edge-gateway secret box v1';

/**
 * Makes the box for a key of at least 16 characters. The key derivation is slow on purpose: call it once per process.
 * @param others keys that are accepted, too
 */
export function createSecretBox(secretKey: string, others: readonly string[] = []): SecretBox {
  const current = deriveKey(secretKey);
  const keys = [current, ...others.map(deriveKey)];
  return {
    keyIds: [current.id, ...keys.slice(1).map(({ id }) => id)],
    seal: (text) => sealedPrefix(current.id) + encrypt(current, text),
    open(sealed) {
      const [, id, named] = NAMED_TEXT.exec(sealed) ?? [];
      if (named === undefined && !sealed.startsWith(UNNAMED))
        throw new SecretKeyError('The sealed text has an unknown layout');
      const possible = named === undefined ? keys : keys.filter((key) => key.id === id);
      return openWith(possible, Buffer.from(named ?? sealed.slice(UNNAMED.length), 'base64'));
    },
    sign: (purpose, text) => signature(current, purpose, text),
    signatures: (purpose, text) => keys.map((key) => signature(key, purpose, text)),
  };
}

/** What all texts begin with that a key has sealed. */
export function sealedPrefix(keyId: string): string {
  return `${NAMED}${keyId}:`;
}

function deriveKey(secretKey: string): Key {
  const bytes = scryptSync(secretKey, SALT, 32);
  return { bytes, id: createHmac('sha256', bytes).update('id of the key').digest('hex').slice(0, 12) };
}

function encrypt({ bytes }: Key, text: string): string {
  const iv = randomBytes(IV_LENGTH);
  const cipher = createCipheriv('aes-256-gcm', bytes, iv);
  const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), encrypted]).toString('base64');
}

function openWith(keys: readonly Key[], encrypted: Buffer): string {
  let cause: unknown;
  for (const key of keys) {
    try {
      return decrypt(key, encrypted);
    } catch (thrown) {
      cause = thrown;
    }
  }
  throw new SecretKeyError('The sealed text does not open: it was sealed with another SECRET_KEY', { cause });
}

function decrypt({ bytes }: Key, encrypted: Buffer): string {
  const decipher = createDecipheriv('aes-256-gcm', bytes, encrypted.subarray(0, IV_LENGTH), {
    authTagLength: TAG_LENGTH,
  });
  decipher.setAuthTag(encrypted.subarray(IV_LENGTH, IV_LENGTH + TAG_LENGTH));
  const opened = [decipher.update(encrypted.subarray(IV_LENGTH + TAG_LENGTH)), decipher.final()];
  return Buffer.concat(opened).toString('utf8');
}

function signature({ bytes }: Key, purpose: string, text: string): string {
  const purposeKey = createHmac('sha256', bytes).update(purpose).digest();
  return createHmac('sha256', purposeKey).update(text).digest('base64url');
}

/** The settings of the keys. */
type KeySettings = Pick<Config, 'SECRET_KEY' | 'DATA_DIR'> &
  Partial<Pick<Config, 'SECRET_KEY_NEXT' | 'SECRET_KEY_PREVIOUS'>>;

/**
 * The box of this installation: its key is SECRET_KEY, or the key file in DATA_DIR, which the first process makes. The
 * next and the previous key are accepted, if they are set.
 * @throws ConfigError when a key is too short, or there is another key but none to seal with
 */
export async function loadSecretBox(config: KeySettings): Promise<SecretBox> {
  const others = OTHER_KEYS.flatMap((name) => {
    const key = config[name];
    return key === undefined ? [] : [{ name, key: longEnough(key, name) }];
  });
  const current = await currentKey(config, others[0]?.name);
  const same = others.find(({ key }) => key === current);
  if (same) throw new ConfigError(`${same.name}: is the same as the present key; set another one, or none`);
  return createSecretBox(
    current,
    others.map(({ key }) => key),
  );
}

const OTHER_KEYS = ['SECRET_KEY_PREVIOUS', 'SECRET_KEY_NEXT'] as const;

/**
 * Makes the key file if a process of this installation will need one, and none is there.
 * @returns its path; undefined when SECRET_KEY is set
 * @throws ConfigError as `loadSecretBox`
 */
export async function makeKeyFile(config: KeySettings): Promise<string | undefined> {
  if (config.SECRET_KEY !== undefined) return undefined;
  await currentKey(
    config,
    OTHER_KEYS.find((name) => config[name] !== undefined),
  );
  return keyFile(config);
}

function keyFile({ DATA_DIR }: KeySettings): string {
  return join(DATA_DIR, 'secret.key');
}

/** @param other the setting of another key: then no key is made, which would be that of this machine alone */
async function currentKey(config: KeySettings, other: string | undefined): Promise<string> {
  const { SECRET_KEY, DATA_DIR } = config;
  if (SECRET_KEY !== undefined) return longEnough(SECRET_KEY, 'SECRET_KEY');
  const path = keyFile(config);
  const stored = await readKey(path);
  if (stored === undefined && other !== undefined)
    throw new ConfigError(`${other}: needs SECRET_KEY, or a key in ${path}`);
  return longEnough(stored ?? (await makeKey(DATA_DIR, path)), path);
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
