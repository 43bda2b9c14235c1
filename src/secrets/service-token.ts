/**
 * Tokens that handlers authenticate with: `<endpoint id>.<nonce>.<signature>`. Each handler process has one of its own.
 * It is valid on its machine while the process runs, as long as a file with the name of its nonce is in a folder that
 * handlers cannot reach. The file has the id of the user that the handler runs as, if that is one of its own. A token
 * identifies the endpoint and grants nothing: bindings are looked up with every call.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chown, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PROCESS_PATTERN, THIS_PROCESS } from '../util/process-liveness.js';
import { HAS_UNTRUSTED_USERS, SERVICE_GROUP } from '../util/untrusted-users.js';
import type { SecretBox } from './secret-box.js';

type Signer = Pick<SecretBox, 'sign'>;
type Verifier = Pick<SecretBox, 'signatures'>;

/** A handler process, as its token identifies it. */
export interface HandlerInstance {
  readonly endpointId: string;
  /** Different for each process. */
  readonly nonce: string;
}

const PURPOSE = 'service token of a handler process';
const TOKEN = /^([0-9a-f-]{36})\.([0-9a-f-]{1,80})\.[\w-]+$/;

/** The name of the file of a nonce; the first group identifies the gateway that has made it. */
export const NONCE_FILE = new RegExp(`^(${PROCESS_PATTERN})-[0-9a-f]{32}$`);

/**
 * Makes the token of a handler process, before that starts.
 * @param folder of the nonces
 * @param user that only this process runs as: services whose process can see who connects, those in Rust, let in no
 * others. Undefined when there is none.
 */
export async function issueServiceToken(
  secrets: Signer,
  folder: string,
  endpointId: string,
  user: number | undefined,
) {
  const nonce = `${THIS_PROCESS}-${randomBytes(16).toString('hex')}`;
  const file = join(folder, nonce);
  await writeFile(file, String(user ?? ''), { mode: 0o640, flag: 'wx' });
  if (HAS_UNTRUSTED_USERS) await chown(file, 0, SERVICE_GROUP);
  return {
    token: signServiceToken(secrets, { endpointId, nonce }),
    revoke: () => rm(file, { force: true }),
  };
}

/** The token of a handler process, signed with a key. */
export function signServiceToken(secrets: Signer, { endpointId, nonce }: HandlerInstance): string {
  const text = `${endpointId}.${nonce}`;
  return `${text}.${secrets.sign(PURPOSE, text)}`;
}

/**
 * Who a token was made for, with any key that is accepted; undefined when its signature is invalid, or the process does
 * not run here.
 */
export function readServiceToken(
  secrets: Verifier,
  folder: string,
  token: string,
): HandlerInstance | undefined {
  const [, endpointId, nonce] = TOKEN.exec(token) ?? [];
  if (endpointId === undefined || nonce === undefined) return undefined;
  const instance = { endpointId, nonce };
  const text = `${endpointId}.${nonce}`;
  const valid = secrets.signatures(PURPOSE, text).some((signature) => isSame(token, `${text}.${signature}`));
  return valid && existsSync(join(folder, nonce)) ? instance : undefined;
}

function isSame(token: string, expected: string): boolean {
  const [given, right] = [Buffer.from(token), Buffer.from(expected)];
  return given.length === right.length && timingSafeEqual(given, right);
}

/** The nonces of the handler processes that run. */
export async function validNonces(folder: string): Promise<ReadonlySet<string>> {
  return new Set(await readdir(folder));
}

const API_PURPOSE = 'management API to actor hosts';
const PRODUCT_PURPOSE = 'processes of this product to the management API';
const GATEWAY_PURPOSE = 'internal requests to gateways';

/** The token with which the management API reaches actor hosts of other machines. */
export function actorHostToken(secrets: Signer): string {
  return secrets.sign(API_PURPOSE, '');
}

/** The tokens that actor hosts accept from the management API. */
export function actorHostTokens(secrets: Verifier): readonly string[] {
  return secrets.signatures(API_PURPOSE, '');
}

/** The token with which other processes of this product reach gateways. */
export function gatewayToken(secrets: Signer): string {
  return secrets.sign(GATEWAY_PURPOSE, '');
}

/** The tokens that gateways accept from other processes of this product. */
export function gatewayTokens(secrets: Verifier): readonly string[] {
  return secrets.signatures(GATEWAY_PURPOSE, '');
}

/** The credential of `npm run up` at the management API of its machine. */
export function productToken(secrets: Signer): string {
  return secrets.sign(PRODUCT_PURPOSE, '');
}

/** The credentials of this product that the management API accepts. */
export function productTokens(secrets: Verifier): readonly string[] {
  return secrets.signatures(PRODUCT_PURPOSE, '');
}
