/** The progress of an import as server-sent events, read from the database: clients may connect late and reconnect. */
import { Readable } from 'node:stream';
import { countHandlers, handlersOf } from '../../store/import-handlers.js';
import { findImport, importProgress } from '../../store/imports.js';
import type { Logger } from '../../util/log.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { presentHandler, presentResult } from './present.js';
import type { ProgressEvent } from './schema.js';

/** Interval of comments that keep proxies from closing an idle connection. */
const KEEPALIVE_MS = 15_000;
/** Reconnection delay of clients. */
const RETRY_MS = 2_000;

/**
 * The events of an import after a version of it. The stream ends after the event `done`, when the process stops, and on
 * errors, after which clients reconnect.
 */
export function importEvents(deps: ApiDependencies, id: string, after: number, log: Logger): Readable {
  const closed = new AbortController();
  const close = () => closed.abort();
  const source = events(deps, id, after, closed.signal);
  // When destroyed, `Readable.from` would wait for the pending event.
  const stream = new Readable({
    read: () => {
      source.next().then(
        ({ value }) => stream.push(value ?? null),
        (error: unknown) => {
          if (!closed.signal.aborted) log.warn({ err: error }, 'the events of an import ended early');
          stream.push(null);
        },
      );
    },
    destroy: (error, done) => {
      deps.stopping.removeEventListener('abort', close);
      close();
      done(error);
    },
  });
  if (deps.stopping.aborted) close();
  deps.stopping.addEventListener('abort', close);
  return stream;
}

async function* events(
  { store, changes }: ApiDependencies,
  id: string,
  after: number,
  closed: AbortSignal,
): AsyncGenerator<string, undefined, void> {
  yield `retry: ${RETRY_MS}\n\n`;
  let seen = after;
  for (;;) {
    const read = async () => {
      const current = await importProgress(store, id);
      if (!current) throw new Error(`The import ${id} was deleted`);
      return current.version > seen || current.finished_at ? current : undefined;
    };
    const current = await changes.waitFor('import', id, KEEPALIVE_MS, read, closed);
    if (!current) {
      yield ': keep-alive\n\n';
      continue;
    }
    const [counts, handlers] = await Promise.all([countHandlers(store, id), handlersOf(store, id, seen)]);
    const progress: ProgressEvent = { state: current.state, counts, handlers: handlers.map(presentHandler) };
    yield event('progress', current.version, progress);
    seen = current.version;
    if (!current.finished_at) continue;
    const imported = await findImport(store, id);
    if (!imported) throw new Error(`The import ${id} was deleted`);
    const result = presentResult(imported, await handlersOf(store, id));
    yield event('done', seen, { state: imported.state, result });
    return undefined;
  }
}

function event(name: string, id: number, data: unknown): string {
  return `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
}
