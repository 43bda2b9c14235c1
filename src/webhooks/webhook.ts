/** Sends webhooks, signed as Standard Webhooks has it: https://github.com/standard-webhooks/standard-webhooks. */
import { createHmac, randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { lookupPublic, requirePublicHost } from '../util/public-address.js';

/** A secret: this, and 24 to 64 bytes in base64. */
const SECRET_PREFIX = 'whsec_';
export const SECRET_PATTERN = `^${SECRET_PREFIX}[A-Za-z0-9+/]{32,86}={0,2}$`;
const SECRET_BYTES = 32;
const TIMEOUT_MS = 10_000;

export interface Webhook {
  readonly url: string;
  readonly secret: string;
  /** The same whenever it is sent again. */
  readonly id: string;
  readonly body: string;
}

export function newWebhookSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/**
 * Sends a webhook; redirects are not followed, and what is answered is not read.
 * @param allowsPrivate whether it may go to addresses that are not of the internet
 * @returns the status of the answer
 * @throws Error when there is none, PrivateAddressError
 */
export async function sendWebhook(webhook: Webhook, allowsPrivate: boolean): Promise<number> {
  const url = new URL(webhook.url);
  if (!allowsPrivate) requirePublicHost(url);
  const body = Buffer.from(webhook.body);
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      // One connection for each: nothing of an earlier one is used again.
      agent: false,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(!allowsPrivate && { lookup: lookupPublic }),
      headers: {
        'Content-Type': 'application/json',
        'Content-Length': body.length,
        'User-Agent': 'edge-gateway',
        ...signatureOf(webhook, Math.floor(Date.now() / 1000)),
      },
    });
    sent.once('response', (response) => {
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    sent.once('error', (error) => {
      reject(error.name === 'TimeoutError' ? new Error(`no answer within ${TIMEOUT_MS / 1000} s`) : error);
    });
    sent.end(body);
  });
}

function signatureOf({ id, secret, body }: Webhook, seconds: number): Record<string, string> {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return {
    'Webhook-Id': id,
    'Webhook-Timestamp': String(seconds),
    'Webhook-Signature': `v1,${signature}`,
  };
}
