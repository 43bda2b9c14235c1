/** Server-sent events: responses that go on until the client leaves, the source ends, or the process stops. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Logger } from '../../util/log.js';
import { jsonInParts } from '../../util/pauses.js';
import { Reply } from './reply.js';

/** Interval of comments that keep proxies from closing an idle connection. */
export const KEEPALIVE_MS = 15_000;
export const KEEPALIVE = ': keep-alive\n\n';
/** Reconnection delay of clients. */
const RETRY_MS = 2_000;
/** A busy stream does not ask for each event. */
const ALLOWED_MS = 1_000;

/** What a stream needs of the request that it answers. */
export interface StreamRequest {
  readonly raw: IncomingMessage;
  readonly log: Logger;
  isStillAllowed(): Promise<boolean>;
}

/** Aborted when the process begins to stop. */
interface StopSignal {
  readonly stopping: AbortSignal;
}

type Source = (closed: AbortSignal) => AsyncGenerator<string, undefined, void>;

/** An event, with the id that a client which reconnects sends as `Last-Event-ID`. */
export function event(name: string, id: number | string, data: unknown): string {
  return `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** An event whose data may be large. */
export async function largeEvent(name: string, id: number | string, data: unknown): Promise<string> {
  return `event: ${name}\nid: ${id}\ndata: ${(await jsonInParts(data)).toString()}\n\n`;
}

/** Only an id: what a client that reconnects sends, though nothing has happened. */
export function eventId(id: string): string {
  return `id: ${id}\n\n`;
}

/**
 * A response of events. It ends with its source and on errors, after which clients reconnect, and when whoever reads it
 * may no longer do so, or may see something else.
 * @param source makes the events; its signal aborts when nobody reads them any more
 * @param allowedMs for so long whoever reads it is taken to be allowed to
 */
export function eventStream(
  { stopping }: StopSignal,
  request: StreamRequest,
  source: Source,
  allowedMs = ALLOWED_MS,
): Reply {
  const { socket } = request.raw;
  const stream = streamOf(stopping, request, source, allowedMs);
  // The server supports half-closed connections, but a client that half-closes an event stream has disconnected.
  const disconnect = () => socket.destroy();
  socket.once('end', disconnect);
  stream.once('close', () => socket.off('end', disconnect));
  return new Reply(200, stream, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store',
    // Disables response buffering in nginx.
    'X-Accel-Buffering': 'no',
  });
}

function streamOf(
  stopping: AbortSignal,
  { isStillAllowed, log }: StreamRequest,
  source: Source,
  allowedMs: number,
): Readable {
  const closed = new AbortController();
  const close = () => closed.abort();
  const events = source(closed.signal);
  let isFirst = true;
  let allowedAt = performance.now();
  /** The next event; undefined at the end. */
  const next = async (): Promise<string | undefined> => {
    const { value } = await events.next();
    if (value === undefined || performance.now() - allowedAt < allowedMs) return value;
    if (!(await isStillAllowed())) {
      log.info('a stream of events ended: whoever reads it may no longer see the same');
      return undefined;
    }
    allowedAt = performance.now();
    return value;
  };
  // When destroyed, `Readable.from` would wait for the pending event.
  const stream = new Readable({
    read: () => {
      if (isFirst) {
        isFirst = false;
        stream.push(`retry: ${RETRY_MS}\n\n`);
        return;
      }
      next().then(
        (value) => stream.push(value ?? null),
        (error: unknown) => {
          if (!closed.signal.aborted) log.warn({ err: error }, 'a stream of events ended early');
          stream.push(null);
        },
      );
    },
    destroy: (error, done) => {
      stopping.removeEventListener('abort', close);
      close();
      done(error);
    },
  });
  if (stopping.aborted) close();
  stopping.addEventListener('abort', close);
  return stream;
}
