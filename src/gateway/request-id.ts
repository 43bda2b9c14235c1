/** Ids for requests that came without one. */
import { randomBytes } from 'node:crypto';

const PROCESS = randomBytes(9).toString('base64url');
let count = 0;

/** An id that no other request has, here or elsewhere. A count costs less than random digits for each request. */
export function newRequestId(): string {
  return `${PROCESS}-${(count++).toString(36)}`;
}
