/**
 * The rows of `request-table.ts` that exist in HTTP/2 too, with what each gets there, and some that exist only there.
 * The same tables stand in `docs/HTTP.md`; `http2-requests.test.ts` sends every row and compares them.
 */
import type { Fields } from '../support/raw-http2.js';
import type { Place } from './request-table.js';

/**
 * What a request gets: it is taken, or refused with a status, or its stream is reset with PROTOCOL_ERROR, or its
 * connection is closed. One that is refused for its head is reset instead if its body comes before the answer is sent,
 * where it has not the length that its head says.
 */
export type Http2Outcome = 'taken' | 'reset' | 'closed' | '400, or reset' | number;

export interface Http2Row {
  readonly fields: (place: Place) => Fields;
  readonly body?: string;
  readonly trailers?: Fields;
  readonly outcome: Http2Outcome;
}

const LONG = 'x'.repeat(17_000);
const pseudo = (method: string, path: string, authority: string): Fields => [
  [':method', method],
  [':scheme', 'http'],
  [':authority', authority],
  [':path', path],
];

const get = (outcome: Http2Outcome, ...more: Fields): Http2Row => ({
  fields: ({ get: path, host }) => [...pseudo('GET', path, host), ...more],
  outcome,
});
const post = (outcome: Http2Outcome, ...more: Fields): Http2Row => ({
  fields: ({ post: path, host }) => [...pseudo('POST', path, host), ...more],
  body: '{}',
  outcome,
});
/** A GET of something below the address. */
const below = (outcome: Http2Outcome, rest: string): Http2Row => ({
  fields: ({ get: path, host }) => pseudo('GET', `${path}${rest}`, host),
  outcome,
});
const target = (outcome: Http2Outcome, method: string, path?: string): Http2Row => ({
  fields: (place) => pseudo(method, path ?? place.get, place.host),
  outcome,
});
const authority = (outcome: Http2Outcome, text: string): Http2Row => ({
  fields: ({ get: path }) => pseudo('GET', path, text),
  outcome,
});
const encoding = (value: string) => post('reset', ['transfer-encoding', value]);
const length = (outcome: Http2Outcome, ...values: readonly string[]) =>
  post(outcome, ...values.map((value) => ['content-length', value] as const));

/** By the input. Those that are missing do not exist in HTTP/2. */
export const HTTP2_ROWS: Readonly<Record<string, Http2Row>> = {
  '`Content-Length`': length('taken', '2'),
  '`Transfer-Encoding: chunked`, in any case': encoding('Chunked'),
  '`Content-Length`, then `Transfer-Encoding` (CL.TE)': post(
    'reset',
    ['content-length', '2'],
    ['transfer-encoding', 'chunked'],
  ),
  '`Transfer-Encoding`, then `Content-Length` (TE.CL)': post(
    'reset',
    ['transfer-encoding', 'chunked'],
    ['content-length', '2'],
  ),
  'two different `Content-Length`': length('reset', '2', '60'),
  'two equal `Content-Length`': length(400, '2', '2'),
  '`Content-Length: 2, 2`': length('reset', '2, 2'),
  '`Content-Length: +2`': length('reset', '+2'),
  '`Content-Length: -2`': length('reset', '-2'),
  '`Content-Length: 0x2`': length('reset', '0x2'),
  '`Content-Length: 2 2`': length('reset', '2 2'),
  '`Content-Length:` with nothing': length('400, or reset', ''),
  '`Content-Length` of 2^64 or more': length('reset', '18446744073709551618'),
  'spaces around the value of `Content-Length`': length('reset', ' 2 '),
  '`Transfer-Encoding: xchunked`': encoding('xchunked'),
  '`Transfer-Encoding: chunked, identity`': encoding('chunked, identity'),
  '`Transfer-Encoding: identity`': encoding('identity'),
  '`Transfer-Encoding: gzip, chunked`': encoding('gzip, chunked'),
  '`Transfer-Encoding: chunked` twice': post(
    'reset',
    ['transfer-encoding', 'chunked'],
    ['transfer-encoding', 'chunked'],
  ),
  '`Transfer-Encoding: identity` and then `chunked`': post(
    'reset',
    ['transfer-encoding', 'identity'],
    ['transfer-encoding', 'chunked'],
  ),
  'a vertical tab before `chunked`': post('closed', ['transfer-encoding', '\x0bchunked']),
  'a body with GET': { ...get('taken'), body: '{}' },
  'trailers: left out': { ...post('taken'), trailers: [['x-trailer', '1']] },
  'trailers of more than 16 KiB': { ...post('taken'), trailers: [['x-trailer', LONG + LONG]] },
  'bare LF after a header': get('closed', ['x-one', '1\nx-two: 2']),
  'bare CR in a header': get('closed', ['x-one', '1\rx-two: 2']),
  'a space before the colon': get('closed', ['x-one ', '1']),
  'a header without a name': get('closed', ['', 'nothing']),
  'a header name with an underscore': post(400, ['content_length', '2']),
  'a header name beyond ASCII': get('closed', ['x-\xfc', '1']),
  'NUL in a header': get('closed', ['x-nul', 'a\0b']),
  'a control character in a header': get('closed', ['x-control', 'a\x01b']),
  'DEL in a header': get('closed', ['x-delete', 'a\x7fb']),
  'bytes beyond ASCII in a header: text in UTF-8, else in Latin-1': get(
    'taken',
    ['x-text', 'gr\xc3\xbc\xc3\x9fe'],
    ['x-bytes', '\xff\xfe'],
  ),
  'a header of more than 16 KiB': get(431, ['x-long', LONG]),
  'a head of more than 16 KiB': get(
    431,
    ...Array.from({ length: 60 }, () => ['x-part', LONG.slice(0, 300)] as const),
  ),
  'more than 100 headers': get(431, ...Array.from({ length: 100 }, () => ['x', '1'] as const)),
  '100 headers': get('taken', ...Array.from({ length: 99 }, () => ['x', '1'] as const)),
  'a target of more than 16 KiB': below(431, `?${LONG}`),
  'no `Host`': {
    fields: ({ get: path }) => pseudo('GET', path, '').filter(([name]) => name !== ':authority'),
    outcome: 400,
  },
  'two `Host`': get(400, ['host', 'localhost'], ['host', 'localhost']),
  'a `Host` that is none': authority('reset', 'a b'),
  'a `Host` with a user': authority(400, 'user@localhost'),
  'a `Host` with a path': authority('reset', 'localhost/x'),
  'absolute form: its host counts': target('reset', 'GET', 'http://localhost/odd/get'),
  'absolute form with a host that is not served': target('reset', 'GET', 'http://other.example/odd/get'),
  'absolute form with a user': target('reset', 'GET', 'http://user@localhost/odd/get'),
  'absolute form without a host': target('reset', 'GET', 'http:///odd/get'),
  'absolute form of another scheme': target('reset', 'GET', 'ftp://localhost/odd/get'),
  'neither path nor URL': target('reset', 'GET', 'nothing'),
  '`OPTIONS *`': target(404, 'OPTIONS', '*'),
  '`*` with another method': target(400, 'GET', '*'),
  '`CONNECT`': {
    fields: () => [
      [':method', 'CONNECT'],
      [':authority', 'localhost:80'],
    ],
    outcome: 405,
  },
  '`TRACE`': target(405, 'TRACE'),
  'another method that the address does not have': target(405, 'DELETE'),
  'a method that HTTP does not have': target(400, 'FETCH'),
  'a space in the target': below('reset', '/a b'),
  'a control character in the target': below('reset', '/a\x01'),
  'NUL in the target': below('reset', '/a\0'),
  'a byte beyond ASCII in the target': below(400, '/\xc3\xbc'),
  '`#` in the target': below('taken', '#fragment'),
  'a backslash in the path': below(400, '\\..\\x'),
  'dot segments': below(400, '/../x'),
  'a dot segment at the end': below(400, '/..'),
  'encoded dot segments': below(400, '/%2e%2E/x'),
  'dot segments with encoded slashes': below(400, '/x%2f..%2fy'),
  'dot segments with encoded backslashes': below(400, '/x%5c..%5cy'),
  '`%00` in the path': below(400, '/a%00'),
  '`%` without two digits in the path': below(400, '/100%'),
  'encoded bytes in the path that are not UTF-8': below(400, '/%ff'),
  'encoded slashes of more bytes than UTF-8 has for them': below(400, '/..%c0%af'),
  'two slashes in a row: an empty segment': {
    fields: ({ get: path, host }) => pseudo('GET', `/${path}`, host),
    outcome: 404,
  },
  '`;` in the path: as it is': below(404, ';x=1'),
  '`%00` and dot segments in the query': below('taken', '?c=%00&d=../..'),
  'any other `%` in the query': below('taken', '?a=%&b=%ff'),
  '`Upgrade: websocket`: not taken up': get('reset', ['upgrade', 'websocket']),
  '`Upgrade: h2c`: not taken up': get('reset', ['connection', 'upgrade'], ['upgrade', 'h2c']),
  '`Expect` of anything but `100-continue`': post(417, ['expect', 'miracles']),
};

/** What only HTTP/2 has, by the input. */
export const ONLY_HTTP2: Readonly<Record<string, Http2Row>> = {
  'a `Host` like `:authority`': get('taken', ['host', 'LOCALHOST']),
  'a `Host` unlike `:authority`': get(400, ['host', 'other.example']),
  '`Host` alone': {
    fields: ({ get: path, host }) => [
      ...pseudo('GET', path, host).filter(([name]) => name !== ':authority'),
      ['host', host],
    ],
    outcome: 'taken',
  },
  'a scheme that is neither http nor https': {
    fields: ({ get: path, host }) => [
      [':method', 'GET'],
      [':scheme', 'ftp'],
      [':authority', host],
      [':path', path],
    ],
    outcome: 400,
  },
  'a header name in upper case': get('closed', ['X-Upper', '1']),
  'a pseudo-header behind a header': {
    fields: ({ get: path, host }) => [['x', '1'], ...pseudo('GET', path, host)],
    outcome: 'reset',
  },
  'a pseudo-header twice': get('reset', [':path', '/']),
  'an unknown pseudo-header': get('closed', [':unknown', '1']),
  '`Connection`, `Keep-Alive`, `Proxy-Connection`': get('reset', ['keep-alive', '1']),
  '`TE: trailers`': get('taken', ['te', 'trailers']),
  '`TE` of anything else': get('reset', ['te', 'gzip']),
  'an extended CONNECT (`:protocol`)': {
    fields: ({ get: path, host }) => [...pseudo('CONNECT', path, host), [':protocol', 'websocket']],
    outcome: 'reset',
  },
  'a body shorter than `Content-Length`': length('reset', '3'),
  'a body longer than `Content-Length`': length('reset', '1'),
  'several `Cookie`: joined': get('taken', ['cookie', 'a=b'], ['cookie', 'c=d']),
};
