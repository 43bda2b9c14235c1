/** Follows an import by its events, while it goes on. */
import { useEffect, useState } from 'preact/hooks';
import { useQuery } from '../api/query.js';
import { isExpired } from '../api/session.js';
import type { Import, ImportCounts, ImportHandler } from '../generated/routes.js';

interface Progress {
  readonly state: Import['state'];
  readonly counts: ImportCounts;
  /** Those that have changed. */
  readonly handlers: readonly ImportHandler[];
}

const AGAIN_AFTER_MS = 2_000;

/** The import with what its events have told since. */
export function useImport(id: string) {
  const result = useQuery('GET /api/imports/{id}', { params: { id } });
  const [progress, setProgress] = useState<Progress>();
  const [attempt, setAttempt] = useState(0);
  const isOver = result.data?.finished_at !== null;
  useEffect(() => {
    if (!result.data || isOver || isExpired.value) return;
    const source = new EventSource(`/api/imports/${encodeURIComponent(id)}/events`);
    source.addEventListener('progress', ({ data }: MessageEvent<string>) => {
      const told = JSON.parse(data) as Progress;
      setProgress((before) => ({ ...told, handlers: merged(before?.handlers ?? [], told.handlers) }));
    });
    source.addEventListener('done', () => {
      source.close();
      result.refresh();
    });
    let timer: number | undefined;
    source.addEventListener('error', () => {
      // Refused, or at its end: the browser does not try again by itself.
      if (source.readyState !== EventSource.CLOSED) return;
      result.refresh();
      timer = window.setTimeout(() => setAttempt((count) => count + 1), AGAIN_AFTER_MS);
    });
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [id, result.data === undefined, isOver, isExpired.value, attempt]);
  if (!result.data || isOver || !progress) return result;
  const handlers = merged(result.data.handlers, progress.handlers);
  return { ...result, data: { ...result.data, state: progress.state, counts: progress.counts, handlers } };
}

function merged(
  before: readonly ImportHandler[],
  changed: readonly ImportHandler[],
): readonly ImportHandler[] {
  const byEndpoint = new Map(before.map((one) => [one.endpoint_id, one]));
  for (const one of changed) byEndpoint.set(one.endpoint_id, one);
  return [...byEndpoint.values()];
}
