/** Request ids of clients. */

/** Safe in a log line, a header and a URL. */
const USABLE = /^[\w.:+/=-]{1,128}$/;

export function isUsableRequestId(id: string): boolean {
  return USABLE.test(id);
}
