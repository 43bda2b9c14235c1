/** Load of streamed responses: clients that read one after the other to its end, and have each judged. */
import { type RequestOptions, request } from 'node:http';
import { type ClientHttp2Session, constants } from 'node:http2';
import { request as requestWithTls } from 'node:https';

/** How a streamed response has ended, as its client sees it. */
export interface StreamEnd {
  /** Undefined when there was no response. */
  readonly status: number | undefined;
  readonly received: string;
  /** What happened to it; undefined when it has come to its end. */
  readonly error: string | undefined;
}

/** A streamed response that is being read. */
export interface OpenStream {
  /** So far. */
  readonly received: string;
  readonly ended: Promise<StreamEnd>;
}

/** POSTs, and reads the response to its end. */
export type ReadStream = (path: string) => OpenStream;

/** Over HTTP/1.1, each on a connection of its own. @param options with TLS, what its connections need */
export function overHttp1(url: string, options: RequestOptions & { readonly ca?: string } = {}): ReadStream {
  const send = url.startsWith('https:') ? requestWithTls : request;
  return (path) => {
    const sent = send(`${url}${path}`, { method: 'POST', agent: false, ...options });
    const seen = { status: undefined as number | undefined, received: '' };
    const ended = new Promise<StreamEnd>((resolve) => {
      const end = (error?: Error) => resolve({ ...seen, error: error?.message });
      sent.on('error', end).on('response', (response) => {
        seen.status = response.statusCode;
        response.setEncoding('utf8').on('data', (piece: string) => {
          seen.received += piece;
        });
        response.on('end', () => end()).on('error', end);
      });
    });
    sent.end();
    return withEnd(seen, ended);
  };
}

/** Over HTTP/2, all on one connection. */
export function overHttp2(session: ClientHttp2Session): ReadStream {
  return (path) => {
    const stream = session.request({ ':method': 'POST', ':path': path }).setEncoding('utf8');
    const seen = { status: undefined as number | undefined, received: '' };
    const ended = new Promise<StreamEnd>((resolve) => {
      let error: string | undefined = 'closed before its end';
      stream.on('response', (headers) => {
        seen.status = headers[':status'];
      });
      stream.on('data', (piece: string) => {
        seen.received += piece;
      });
      stream.on('end', () => {
        error = undefined;
      });
      // An end may have come before it.
      stream.on('error', ({ message }: Error) => {
        error = message;
      });
      stream.on('close', () => {
        // Node does not call it an error that the connection is closed.
        if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) error ??= `closed with code ${stream.rstCode}`;
        resolve({ ...seen, error });
      });
    });
    stream.end();
    return withEnd(seen, ended);
  };
}

function withEnd(seen: { readonly received: string }, ended: Promise<StreamEnd>): OpenStream {
  return {
    get received() {
      return seen.received;
    },
    ended,
  };
}

export interface StreamLoad {
  /** Streams that have ended so far. */
  ended(): number;
  /** Lets every client read its stream to the end; resolves with what was wrong. */
  stop(): Promise<readonly string[]>;
}

/** Starts the clients. @param judge says what is wrong with a stream, if anything is */
export function startStreamLoad(
  read: ReadStream,
  path: string,
  clients: number,
  judge: (end: StreamEnd) => string | undefined,
): StreamLoad {
  const failures: string[] = [];
  let ended = 0;
  let isOver = false;
  const running = Array.from({ length: clients }, async () => {
    while (!isOver) {
      const end = await read(path).ended;
      const problem = judge(end);
      if (problem !== undefined) failures.push(`${problem}: ${JSON.stringify(end)}`);
      ended++;
    }
  });
  return {
    ended: () => ended,
    stop: async () => {
      isOver = true;
      await Promise.all(running);
      return failures;
    },
  };
}
