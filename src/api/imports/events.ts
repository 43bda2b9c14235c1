/** The progress of an import as server-sent events, read from what is stored: a client may come late, and come back. */
import { Readable } from 'node:stream';
import type { Logger } from '../../log.js';
import { countHandlers, handlersOf } from '../../store/import-handlers.js';
import { findImport, importProgress } from '../../store/imports.js';
import type { ApiDependencies } from '../dependencies.js';
import { presentHandler, presentResult } from './present.js';
import type { ProgressEvent } from './schema.js';

/** So that nobody on the way takes a silent connection for a dead one. */
const COMMENT_EVERY_MS = 15_000;
/** A client that has lost its connection comes back after this. */
const RETRY_MS = 2_000;

/**
 * The events of an import after a version of it. The stream ends after the event `done`, and when the process stops.
 * Errors end it too: the client comes back.
 */
export function importEvents(deps: ApiDependencies, id: string, after: number, log: Logger): Readable {
  const gone = new AbortController();
  const leave = () => gone.abort();
  const source = events(deps, id, after, gone.signal);
  // Not `Readable.from`: when that is destroyed, it waits for the event it has asked for.
  const stream = new Readable({
    read: () => {
      source.next().then(
        ({ value }) => stream.push(value ?? null),
        (error: unknown) => {
          if (!gone.signal.aborted) log.warn({ err: error }, 'the events of an import ended early');
          stream.push(null);
        },
      );
    },
    destroy: (error, done) => {
      deps.stopping.removeEventListener('abort', leave);
      leave();
      done(error);
    },
  });
  if (deps.stopping.aborted) leave();
  deps.stopping.addEventListener('abort', leave);
  return stream;
}

async function* events(
  { store, changes }: ApiDependencies,
  id: string,
  after: number,
  gone: AbortSignal,
): AsyncGenerator<string, undefined, void> {
  yield `retry: ${RETRY_MS}\n\n`;
  let seen = after;
  for (;;) {
    const read = async () => {
      const current = await importProgress(store, id);
      if (!current) throw new Error(`The import ${id} is gone`);
      return current.version > seen || current.finished_at ? current : undefined;
    };
    const current = await changes.waitFor('import', id, COMMENT_EVERY_MS, read, gone);
    if (!current) {
      yield ': going on\n\n';
      continue;
    }
    const [counts, handlers] = await Promise.all([countHandlers(store, id), handlersOf(store, id, seen)]);
    const progress: ProgressEvent = { state: current.state, counts, handlers: handlers.map(presentHandler) };
    yield event('progress', current.version, progress);
    seen = current.version;
    if (!current.finished_at) continue;
    const imported = await findImport(store, id);
    if (!imported) throw new Error(`The import ${id} is gone`);
    const result = presentResult(imported, await handlersOf(store, id));
    yield event('done', seen, { state: imported.state, result });
    return undefined;
  }
}

function event(name: string, id: number, data: unknown): string {
  return `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
}
