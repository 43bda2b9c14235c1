/** What the gateway itself reads of a request's headers, in one pass over what was received. */
import { isUsableRequestId } from '../request-id.js';

/** The part of the headers that routing and framing need. */
export interface RequestHeaders {
  /** Lower-case host without port; empty when there is none. */
  readonly host: string;
  /** How many Host headers there are: more than one is nobody's address. */
  readonly hosts: number;
  /** 0 when the header is missing. */
  readonly contentLength: number;
  readonly hasBody: boolean;
  /** What the client calls its request, if that is fit to be passed on and logged. */
  readonly requestId: string | undefined;
}

/** @param rawHeaders names and values in turn */
export function readRequestHeaders(rawHeaders: readonly string[]): RequestHeaders {
  let host = '';
  let hosts = 0;
  let contentLength = 0;
  let hasBody = false;
  let requestId: string | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const value = rawHeaders[at + 1] ?? '';
    // The length sorts out nearly all names before any of them is converted.
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'host') {
          host = hostName(value);
          hosts++;
        }
        break;
      case 12:
        if (name.toLowerCase() === 'x-request-id' && isUsableRequestId(value)) requestId = value;
        break;
      case 14:
        if (name.toLowerCase() === 'content-length') {
          contentLength = Number(value);
          hasBody ||= contentLength > 0;
        }
        break;
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') hasBody = true;
        break;
      default:
    }
  }
  return { host, hosts, contentLength, hasBody, requestId };
}

/** A request target split at its host. */
export interface Target {
  /** Lower-case host without port, when the target names one. */
  readonly host: string | undefined;
  /** Path and query. */
  readonly path: string;
}

/** Reads a target as it is sent to a server (`/path`) or to a proxy (`http://host/path`): RFC 9112 wants both taken. */
export function readTarget(url: string): Target {
  const absolute = url.startsWith('/') ? undefined : /^https?:\/\/([^/?#]+)(.*)$/i.exec(url);
  if (!absolute) return { host: undefined, path: url };
  const [, authority = '', rest = ''] = absolute;
  return { host: hostName(authority), path: rest.startsWith('/') ? rest : `/${rest}` };
}

/** The host of a Host header, without its port, lower-case. */
function hostName(value: string): string {
  // An IPv6 address holds colons of its own, and stands in brackets.
  const end = value.startsWith('[') ? value.indexOf(']') + 1 : value.indexOf(':');
  const host = (end > 0 ? value.slice(0, end) : value).toLowerCase();
  return host.endsWith('.') ? host.slice(0, -1) : host;
}
