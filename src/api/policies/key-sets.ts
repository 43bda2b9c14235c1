/**
 * The keys of issuers of tokens, fetched from where they publish them: again and again, and at once when a gateway has
 * seen a token with a key that is not known. What was read last counts until something else was read.
 */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { toError } from '../../errors.js';
import { type PublicKey, usableKeys } from '../../model/policies/key-set.js';
import type { Database } from '../../store/database.js';
import { claimDueKeySets, saveKeySet, saveKeySetError } from '../../store/key-sets.js';
import type { Logger } from '../../util/log.js';
import { PeriodicTask } from '../../util/periodic-task.js';
import { lookupPublic, PrivateAddressError, requirePublicHost } from '../../util/public-address.js';

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 256 * 1024;
/** How often it is looked for keys that are to be fetched. */
const LOOK_EVERY_MS = 250;

/** Fetches the keys that are due, until it is stopped. */
export function keepKeySets(store: Database, allowsPrivate: boolean, log: Logger): PeriodicTask {
  return new PeriodicTask(
    LOOK_EVERY_MS,
    async () => {
      const urls = await claimDueKeySets(store);
      await Promise.all(
        urls.map(async (url) => {
          const error = await refreshKeySet(store, url, allowsPrivate).catch((thrown: unknown) => {
            if (thrown instanceof PrivateAddressError)
              return `${thrown.message}; ALLOW_PRIVATE_URLS allows it`;
            throw thrown;
          });
          if (error !== undefined) log.warn({ url, error }, 'keys of an issuer could not be read');
        }),
      );
    },
    (error) => log.warn({ err: error }, 'looking for keys of issuers failed'),
  );
}

/**
 * Fetches a set of keys, and stores it.
 * @returns why it could not be read
 * @throws PrivateAddressError
 */
export async function refreshKeySet(
  store: Database,
  url: string,
  allowsPrivate: boolean,
): Promise<string | undefined> {
  try {
    await saveKeySet(store, url, await fetchKeySet(url, allowsPrivate));
    return undefined;
  } catch (thrown) {
    const error = toError(thrown);
    await saveKeySetError(store, url, error.message);
    if (error instanceof PrivateAddressError) throw error;
    return error.message;
  }
}

/** Redirects are not followed: they could lead to a private address. @throws Error */
async function fetchKeySet(address: string, allowsPrivate: boolean): Promise<PublicKey[]> {
  const url = new URL(address);
  if (!allowsPrivate) requirePublicHost(url);
  const keys = (JSON.parse(await read(url, allowsPrivate)) as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) throw new Error('it is no set of keys: {"keys": [...]} is expected');
  const usable = usableKeys(keys);
  if (usable.length === 0) throw new Error('it has no key that can verify signatures');
  return usable;
}

function read(url: URL, allowsPrivate: boolean): Promise<string> {
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      agent: false,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(!allowsPrivate && { lookup: lookupPublic }),
      headers: { Accept: 'application/jwk-set+json, application/json', 'User-Agent': 'edge-gateway' },
    });
    sent.once('error', (error) => {
      reject(error.name === 'TimeoutError' ? new Error(`no answer within ${TIMEOUT_MS / 1000} s`) : error);
    });
    sent.once('response', (response) => {
      if (response.statusCode !== 200) {
        response.destroy();
        const hint = (response.statusCode ?? 0) < 400 ? '; redirects are not followed' : '';
        reject(new Error(`it answered ${response.statusCode}${hint}`));
        return;
      }
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
        if (text.length > MAX_BYTES) {
          response.destroy();
          reject(new Error(`it is longer than ${MAX_BYTES} bytes`));
        }
      });
      response.once('end', () => resolve(text));
      response.once('error', reject);
    });
    sent.end();
  });
}
