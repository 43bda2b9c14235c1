/** Follows an import by its events, while it goes on. */
import { useState } from 'preact/hooks';
import { useProgressEvents } from '../api/progress.js';
import { useQuery } from '../api/query.js';
import type { BuildingCrates } from '../base/building-crates.js';
import type { Import, ImportCounts, ImportHandler } from '../generated/routes.js';

interface Progress {
  readonly state: Import['state'];
  readonly counts: ImportCounts;
  /** Those that have changed. */
  readonly handlers: readonly ImportHandler[];
  /** That handlers wait for. */
  readonly crates?: readonly BuildingCrates[];
}

/** The import with what its events have reported since. */
export function useImport(id: string) {
  const result = useQuery('GET /api/imports/{id}', { params: { id } });
  const [progress, setProgress] = useState<Progress>();
  const isUnfinished = result.data?.finished_at === null;
  useProgressEvents<Progress>({
    ...{ path: `/api/imports/${encodeURIComponent(id)}/events`, isUnfinished, refresh: result.refresh },
    onProgress: (next) =>
      setProgress((before) => ({ ...next, handlers: merged(before?.handlers ?? [], next.handlers) })),
  });
  return { ...result, data: result.data && withProgress(result.data, isUnfinished ? progress : undefined) };
}

/** An import, with the crates that its handlers wait for. */
export type FollowedImport = Import & { readonly crates: readonly BuildingCrates[] };

function withProgress(imported: Import, progress: Progress | undefined): FollowedImport {
  if (!progress) return { ...imported, crates: [] };
  const { state, counts, crates = [] } = progress;
  return { ...imported, state, counts, handlers: merged(imported.handlers, progress.handlers), crates };
}

function merged(
  before: readonly ImportHandler[],
  changed: readonly ImportHandler[],
): readonly ImportHandler[] {
  const byEndpoint = new Map(before.map((one) => [one.endpoint_id, one]));
  for (const one of changed) byEndpoint.set(one.endpoint_id, one);
  return [...byEndpoint.values()];
}
