/**
 * Tokens that handlers authenticate with: the gateway makes one for each endpoint, the actor host verifies it. A token
 * identifies the endpoint and grants nothing: bindings are looked up with every call.
 */
import { timingSafeEqual } from 'node:crypto';
import type { SecretBox } from './secret-box.js';

type Signer = Pick<SecretBox, 'sign'>;

const PURPOSE = 'service token of an endpoint';
const UUID_LENGTH = 36;

/** Makes the token of an endpoint: its id and a signature. */
export function makeServiceToken(secrets: Signer, endpointId: string): string {
  return `${endpointId}.${secrets.sign(PURPOSE, endpointId)}`;
}

/** The endpoint id of a token; undefined when its signature is invalid. */
export function readServiceToken(secrets: Signer, token: string): string | undefined {
  const endpointId = token.slice(0, UUID_LENGTH);
  const expected = Buffer.from(makeServiceToken(secrets, endpointId));
  const given = Buffer.from(token);
  return given.length === expected.length && timingSafeEqual(given, expected) ? endpointId : undefined;
}

/** The token with which the management API reaches actor hosts of other machines. */
export function actorHostToken(secrets: Signer): string {
  return secrets.sign('management API to actor hosts', '');
}
