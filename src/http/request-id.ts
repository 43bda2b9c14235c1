/** Request ids: validation of those of clients, and new ones. */
import { randomBytes } from 'node:crypto';

/** Safe in a log line, a header and a URL. */
const USABLE = /^[\w.:+/=-]{1,128}$/;

export function isUsableRequestId(id: string): boolean {
  return USABLE.test(id);
}

const PROCESS = randomBytes(9).toString('base64url');
let count = 0;

/** A unique id. A counter is cheaper than random digits for each request. */
export function newRequestId(): string {
  return `${PROCESS}-${(count++).toString(36)}`;
}
