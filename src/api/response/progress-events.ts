/**
 * The progress of something that ends, as server-sent events: `progress` for each change, then `done`. It is read from
 * the database: clients may connect late and reconnect.
 */
import type { Changes } from '../../reconcile/changes.js';
import {
  event,
  eventStream,
  KEEPALIVE,
  KEEPALIVE_MS,
  largeEvent,
  type StreamRequest,
} from './event-stream.js';
import { Reply } from './reply.js';

/** How far it is. */
interface Progress {
  /** Grows with each change; the id of events. */
  readonly version: number;
  readonly finished_at: Date | null;
}

/** What is followed. */
export interface ProgressSource<P extends Progress> {
  /** The topic of its announcements; also its name. */
  readonly topic: 'import' | 'apply';
  readonly id: string;
  /** Rejects when there is none any more. */
  read(): Promise<P>;
  /** Data of the event `progress`. @param after the version that the client has seen */
  progressOf(current: P, after: number): Promise<unknown> | unknown;
  /** Data of the event `done`. */
  done(): Promise<unknown>;
}

type StreamDependencies = Parameters<typeof eventStream>[0] & { readonly changes: Changes };
type ProgressRequest = StreamRequest & { header(name: string): string | undefined };

/** The events after the last one that the client has received; 204 when that was `done`. */
export async function progressReply<P extends Progress>(
  deps: StreamDependencies,
  request: ProgressRequest,
  source: ProgressSource<P>,
): Promise<Reply> {
  const { version, finished_at } = await source.read();
  const last = Number(request.header('last-event-id') ?? 0);
  const after = last > 0 ? Math.min(Math.trunc(last), version) : 0;
  if (finished_at && after >= version) return new Reply(204, null);
  return eventStream(deps, request, (closed) => progressEvents(deps, source, after, closed));
}

async function* progressEvents<P extends Progress>(
  { changes }: Pick<StreamDependencies, 'changes'>,
  { topic, id, read, progressOf, done }: ProgressSource<P>,
  after: number,
  closed: AbortSignal,
): AsyncGenerator<string, undefined, void> {
  let seen = after;
  for (;;) {
    const news = async () => {
      const current = await read();
      return current.version > seen || current.finished_at ? current : undefined;
    };
    const current = await changes.waitFor(topic, id, KEEPALIVE_MS, news, closed);
    if (!current) {
      yield KEEPALIVE;
      continue;
    }
    yield event('progress', current.version, await progressOf(current, seen));
    seen = current.version;
    if (!current.finished_at) continue;
    yield await largeEvent('done', seen, await done());
    return undefined;
  }
}
