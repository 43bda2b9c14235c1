/**
 * Requests that two servers in a row could read in different ways, and other odd ones, with what each gets. The same
 * table stands in `docs/HTTP.md`; `hostile-requests.test.ts` sends every row to both servers and compares the two
 * tables.
 */
import type { ErrorCode } from '../../src/errors.js';

/** Where a row is sent. */
export interface Place {
  /** Answers GET and HEAD. */
  readonly get: string;
  /** Answers POST, and takes any JSON object. */
  readonly post: string;
  /** The host by which it is reached. */
  readonly host: string;
}

/** What a request gets: it is taken, or refused with an error. */
export type Outcome = 'taken' | ErrorCode;

export interface Row {
  readonly input: string;
  readonly bytes: (place: Place) => string;
  readonly gateway: Outcome;
  /** What the gateway does instead of answering in HTTP/1; other tests send it there. */
  readonly http1?: string;
  /** The same as of the gateway unless given. */
  readonly api?: Outcome;
}

export interface Section {
  readonly title: string;
  readonly rows: readonly Row[];
}

/** Must never reach a handler: sent behind what could be read as a body, or as its end. */
export const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n';

const CHUNKS = '2\r\n{}\r\n0\r\n\r\n';

/** A POST with these header lines, and after them these bytes. */
const post =
  (headers: string, rest = '') =>
  ({ post: path, host }: Place) =>
    `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n${headers}\r\n${rest}`;
const get =
  (headers = '') =>
  ({ get: path, host }: Place) =>
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n`;
/** A GET of something below the address. */
const below =
  (rest: string) =>
  ({ get: path, host }: Place) =>
    `GET ${path}${rest} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
/** A request line, and `Host`. */
const line =
  (text: (place: Place) => string) =>
  (place: Place): string =>
    `${text(place)}\r\nHost: ${place.host}\r\n\r\n`;

const BAD = 'malformed_request';
const refused = (input: string, bytes: Row['bytes']): Row => ({ input, bytes, gateway: BAD });
const taken = (input: string, bytes: Row['bytes']): Row => ({ input, bytes, gateway: 'taken' });

export const SECTIONS: readonly Section[] = [
  {
    title: 'Length of the body',
    rows: [
      taken('`Content-Length`', post('Content-Length: 2\r\n', '{}')),
      taken('`Transfer-Encoding: chunked`, in any case', post('Transfer-Encoding: Chunked\r\n', CHUNKS)),
      refused(
        '`Content-Length`, then `Transfer-Encoding` (CL.TE)',
        post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${SMUGGLED}`),
      ),
      refused(
        '`Transfer-Encoding`, then `Content-Length` (TE.CL)',
        post('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', `5c\r\n${SMUGGLED}\r\n0\r\n\r\n`),
      ),
      refused(
        'two different `Content-Length`',
        post('Content-Length: 2\r\nContent-Length: 60\r\n', `{}${SMUGGLED}`),
      ),
      refused(
        'two equal `Content-Length`',
        post('Content-Length: 2\r\nContent-Length: 2\r\n', `{}${SMUGGLED}`),
      ),
      refused('`Content-Length: 2, 2`', post('Content-Length: 2, 2\r\n', `{}${SMUGGLED}`)),
      refused('`Content-Length: +2`', post('Content-Length: +2\r\n', `{}${SMUGGLED}`)),
      refused('`Content-Length: -2`', post('Content-Length: -2\r\n', SMUGGLED)),
      refused('`Content-Length: 0x2`', post('Content-Length: 0x2\r\n', `{}${SMUGGLED}`)),
      refused('`Content-Length: 2 2`', post('Content-Length: 2 2\r\n', `{}${SMUGGLED}`)),
      refused('`Content-Length:` with nothing', post('Content-Length: \r\n', SMUGGLED)),
      refused(
        '`Content-Length` of 2^64 or more',
        post('Content-Length: 18446744073709551618\r\n', `{}${SMUGGLED}`),
      ),
      taken('spaces around the value of `Content-Length`', post('Content-Length: \t2  \r\n', '{}')),
      refused('`Transfer-Encoding: xchunked`', post('Transfer-Encoding: xchunked\r\n', CHUNKS + SMUGGLED)),
      refused(
        '`Transfer-Encoding: chunked, identity`',
        post('Transfer-Encoding: chunked, identity\r\n', CHUNKS + SMUGGLED),
      ),
      refused('`Transfer-Encoding: identity`', post('Transfer-Encoding: identity\r\n', SMUGGLED)),
      refused(
        '`Transfer-Encoding: gzip, chunked`',
        post('Transfer-Encoding: gzip, chunked\r\n', CHUNKS + SMUGGLED),
      ),
      refused(
        '`Transfer-Encoding: chunked` twice',
        post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', CHUNKS + SMUGGLED),
      ),
      refused(
        '`Transfer-Encoding: identity` and then `chunked`',
        post('Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n', CHUNKS + SMUGGLED),
      ),
      refused(
        'a vertical tab before `chunked`',
        post('Transfer-Encoding:\x0bchunked\r\n', CHUNKS + SMUGGLED),
      ),
      refused('`Transfer-Encoding` with HTTP/1.0', (place) =>
        post(
          'Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n',
          CHUNKS + SMUGGLED,
        )(place).replace('HTTP/1.1', 'HTTP/1.0'),
      ),
      taken(
        'a body with GET',
        (place) => `GET ${place.get} HTTP/1.1\r\nHost: ${place.host}\r\nContent-Length: 2\r\n\r\n{}`,
      ),
    ],
  },
  {
    title: 'Chunks',
    rows: [
      taken(
        'chunk extensions, up to 16 KiB',
        post('Transfer-Encoding: chunked\r\n', '2;name=value;x="y"\r\n{}\r\n0\r\n\r\n'),
      ),
      refused(
        'more chunk extensions',
        post('Transfer-Encoding: chunked\r\n', `2;${'x'.repeat(17_000)}\r\n{}\r\n0\r\n\r\n${SMUGGLED}`),
      ),
      refused(
        'chunk size `0x2`',
        post('Transfer-Encoding: chunked\r\n', `0x2\r\n{}\r\n0\r\n\r\n${SMUGGLED}`),
      ),
      refused('chunk size `-2`', post('Transfer-Encoding: chunked\r\n', `-2\r\n{}\r\n0\r\n\r\n${SMUGGLED}`)),
      refused(
        'chunk size with a space before it',
        post('Transfer-Encoding: chunked\r\n', ` 2\r\n{}\r\n0\r\n\r\n${SMUGGLED}`),
      ),
      refused(
        'chunk size with a space after it',
        post('Transfer-Encoding: chunked\r\n', `2 \r\n{}\r\n0\r\n\r\n${SMUGGLED}`),
      ),
      refused(
        'chunk size of 2^64 or more',
        post('Transfer-Encoding: chunked\r\n', `10000000000000002\r\n{}\r\n0\r\n\r\n${SMUGGLED}`),
      ),
      refused(
        'a chunk longer than its size',
        post('Transfer-Encoding: chunked\r\n', `1\r\n{}\r\n0\r\n\r\n${SMUGGLED}`),
      ),
      refused(
        'bare LF after a chunk size',
        post('Transfer-Encoding: chunked\r\n', `2\n{}\r\n0\r\n\r\n${SMUGGLED}`),
      ),
      refused(
        'bare LF after an extension',
        post('Transfer-Encoding: chunked\r\n', `2;x\n{}\r\n0\r\n\r\n${SMUGGLED}`),
      ),
      refused(
        'bare LF after a chunk',
        post('Transfer-Encoding: chunked\r\n', `2\r\n{}\n0\r\n\r\n${SMUGGLED}`),
      ),
      taken(
        'trailers: left out',
        post('Transfer-Encoding: chunked\r\n', '2\r\n{}\r\n0\r\nHost: other\r\nX-Trailer: 1\r\n\r\n'),
      ),
      {
        input: 'trailers of more than 16 KiB',
        bytes: post(
          'Transfer-Encoding: chunked\r\n',
          `2\r\n{}\r\n0\r\nX-Trailer: ${'x'.repeat(17_000)}\r\n\r\n`,
        ),
        gateway: 'headers_too_large',
      },
    ],
  },
  {
    title: 'Lines and headers',
    rows: [
      refused('obsolete line folding', get('X-Folded: a\r\n b\r\n')),
      refused('a folded `Transfer-Encoding`', post('Transfer-Encoding:\r\n chunked\r\n', CHUNKS + SMUGGLED)),
      refused(
        'a space before the first header',
        ({ get: path, host }) => `GET ${path} HTTP/1.1\r\n X: 1\r\nHost: ${host}\r\n\r\n`,
      ),
      refused(
        'bare LF after the request line',
        ({ get: path, host }) => `GET ${path} HTTP/1.1\nHost: ${host}\r\n\r\n`,
      ),
      refused('bare LF after a header', get('X-One: 1\nX-Two: 2\r\n')),
      refused(
        'bare LF at the end of the head',
        ({ get: path, host }) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\n${SMUGGLED}`,
      ),
      refused('bare CR in a header', get('X-One: 1\rX-Two: 2\r\n')),
      refused(
        'bare CR after the request line',
        ({ get: path, host }) => `GET ${path} HTTP/1.1\rHost: ${host}\r\n\r\n`,
      ),
      refused('a space before the colon', post('Transfer-Encoding : chunked\r\n', CHUNKS + SMUGGLED)),
      refused('a header without a colon', get('Nothing\r\n')),
      refused('a header without a name', get(': nothing\r\n')),
      refused('a header name with an underscore', post('Content_Length: 2\r\n', SMUGGLED)),
      refused('a header name beyond ASCII', get('X-\xfc: 1\r\n')),
      refused('NUL in a header', get('X-Nul: a\0b\r\n')),
      refused('a control character in a header', get('X-Control: a\x01b\r\n')),
      refused('DEL in a header', get('X-Delete: a\x7fb\r\n')),
      taken(
        'bytes beyond ASCII in a header: text in UTF-8, else in Latin-1',
        get('X-Text: gr\xc3\xbc\xc3\x9fe\r\nX-Bytes: \xff\xfe\r\n'),
      ),
      taken('empty lines before the request', (place) => `\r\n\r\n${get()(place)}`),
      {
        input: 'a header of more than 16 KiB',
        bytes: get(`X-Long: ${'x'.repeat(17_000)}\r\n`),
        gateway: 'headers_too_large',
      },
      {
        input: 'a head of more than 16 KiB',
        bytes: get(`X-Part: ${'x'.repeat(300)}\r\n`.repeat(60)),
        gateway: 'headers_too_large',
      },
      { input: 'more than 100 headers', bytes: get('X: 1\r\n'.repeat(100)), gateway: 'headers_too_large' },
      taken('100 headers', get('X: 1\r\n'.repeat(99))),
      {
        input: 'a target of more than 16 KiB',
        bytes: below(`?${'x'.repeat(17_000)}`),
        gateway: 'headers_too_large',
      },
    ],
  },
  {
    title: 'Host and target',
    rows: [
      refused('no `Host`', ({ get: path }) => `GET ${path} HTTP/1.1\r\n\r\n`),
      refused('two `Host`', get('Host: localhost\r\n')),
      refused('a `Host` that is none', ({ get: path }) => `GET ${path} HTTP/1.1\r\nHost: a b\r\n\r\n`),
      refused(
        'a `Host` with a user',
        ({ get: path, host }) => `GET ${path} HTTP/1.1\r\nHost: user@${host}\r\n\r\n`,
      ),
      refused(
        'a `Host` with a path',
        ({ get: path, host }) => `GET ${path} HTTP/1.1\r\nHost: ${host}/x\r\n\r\n`,
      ),
      taken(
        'absolute form: its host counts',
        ({ get: path, host }) => `GET http://${host}${path} HTTP/1.1\r\nHost: other.example\r\n\r\n`,
      ),
      {
        input: 'absolute form with a host that is not served',
        bytes: ({ get: path, host }) => `GET http://other.example${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
        gateway: 'not_found',
        api: 'foreign_origin',
      },
      refused(
        'absolute form with a user',
        ({ get: path, host }) => `GET http://user@${host}${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      ),
      refused(
        'absolute form without a host',
        line(({ get: path }) => `GET http://${path} HTTP/1.1`),
      ),
      refused(
        'absolute form of another scheme',
        line(({ get: path, host }) => `GET ftp://${host}${path} HTTP/1.1`),
      ),
      refused(
        'neither path nor URL',
        line(() => 'GET nothing HTTP/1.1'),
      ),
      { input: '`OPTIONS *`', bytes: line(() => 'OPTIONS * HTTP/1.1'), gateway: 'not_found' },
      refused(
        '`*` with another method',
        line(() => 'GET * HTTP/1.1'),
      ),
      {
        input: '`CONNECT`',
        bytes: line(() => 'CONNECT localhost:80 HTTP/1.1'),
        gateway: 'method_not_allowed',
      },
      {
        input: '`TRACE`',
        bytes: line(({ get: path }) => `TRACE ${path} HTTP/1.1`),
        gateway: 'method_not_allowed',
      },
      {
        input: 'another method that the address does not have',
        bytes: line(({ get: path }) => `DELETE ${path} HTTP/1.1`),
        gateway: 'method_not_allowed',
      },
      refused(
        'a method that HTTP does not have',
        line(({ get: path }) => `FETCH ${path} HTTP/1.1`),
      ),
      refused('a space in the target', below('/a b')),
      refused('a control character in the target', below('/a\x01')),
      refused('NUL in the target', below('/a\0')),
      refused('a byte beyond ASCII in the target', below('/\xc3\xbc')),
      refused('`#` in the target', below('#fragment')),
      refused('a backslash in the path', below('\\..\\x')),
      refused('dot segments', below('/../x')),
      refused('a dot segment at the end', below('/..')),
      refused('encoded dot segments', below('/%2e%2E/x')),
      refused('dot segments with encoded slashes', below('/x%2f..%2fy')),
      refused('dot segments with encoded backslashes', below('/x%5c..%5cy')),
      refused('`%00` in the path', below('/a%00')),
      refused('`%` without two digits in the path', below('/100%')),
      refused('encoded bytes in the path that are not UTF-8', below('/%ff')),
      refused('encoded slashes of more bytes than UTF-8 has for them', below('/..%c0%af')),
      {
        input: 'two slashes in a row: an empty segment',
        bytes: ({ get: path, host }) => `GET /${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
        gateway: 'not_found',
      },
      { input: '`;` in the path: as it is', bytes: below(';x=1'), gateway: 'not_found' },
      taken('`%00` and dot segments in the query', below('?c=%00&d=../..')),
      {
        input: 'any other `%` in the query',
        bytes: below('?a=%&b=%ff'),
        ...{ gateway: 'taken', api: BAD },
      },
    ],
  },
  {
    title: 'Versions and other protocols',
    rows: [
      refused('HTTP/0.9', ({ get: path }) => `GET ${path}\r\n\r\n`),
      taken(
        'HTTP/1.0: closed after the answer',
        ({ get: path, host }) => `GET ${path} HTTP/1.0\r\nHost: ${host}\r\n\r\n`,
      ),
      refused(
        'HTTP/1.2',
        line(({ get: path }) => `GET ${path} HTTP/1.2`),
      ),
      refused(
        'HTTP/2.0 in the request line',
        line(({ get: path }) => `GET ${path} HTTP/2.0`),
      ),
      {
        ...refused('the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'),
        http1: 'taken: HTTP/2 begins',
      },
      refused('TLS', () => `\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03${'x'.repeat(190)}`),
      refused('no HTTP', () => 'hello\r\n\r\n'),
      taken(
        '`Upgrade: websocket`: not taken up',
        get('Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'),
      ),
      taken(
        '`Upgrade: h2c`: not taken up',
        get('Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'),
      ),
      {
        input: '`Expect` of anything but `100-continue`',
        bytes: post('Content-Length: 2\r\nExpect: miracles\r\n', '{}'),
        gateway: 'expectation_failed',
      },
    ],
  },
];
