/** Ids of requests: those that clients send, if they are fit to be used, and new ones. */
import { randomBytes } from 'node:crypto';

/** Nothing that could break a log line, a header or a URL. */
const USABLE = /^[\w.:+/=-]{1,128}$/;

export function isUsableRequestId(id: string): boolean {
  return USABLE.test(id);
}

const PROCESS = randomBytes(9).toString('base64url');
let count = 0;

/** An id that no other request has, here or elsewhere. A count costs less than random digits for each request. */
export function newRequestId(): string {
  return `${PROCESS}-${(count++).toString(36)}`;
}
