/** The crates that builds wait for: workers publish how far they are, with what else they tell of themselves. */
import type { BuildingCrates } from '../model/preparation.js';
import type { Store } from './database.js';
import { liveNodes } from './nodes.js';

/** The sets of crates that are being built and that one of these builds waits for, each with those that do. */
export async function cratesOfBuilds(store: Store, builds: readonly string[]): Promise<BuildingCrates[]> {
  if (builds.length === 0) return [];
  const wanted = new Set(builds);
  const workers = await liveNodes(store, 'worker');
  return workers
    .flatMap(({ info }) => (info['crates'] ?? []) as BuildingCrates[])
    .map((set) => ({ ...set, builds: set.builds.filter(({ id }) => wanted.has(id)) }))
    .filter((set) => set.builds.length > 0);
}

/** Of the handlers of an import. */
export async function cratesOfImport(store: Store, importId: string): Promise<BuildingCrates[]> {
  const handlers = await store
    .knex('import_handlers')
    .where({ import_id: importId, state: 'compiling' })
    .whereNotNull('build_id')
    .select<{ build_id: string }[]>('build_id');
  return cratesOfBuilds(
    store,
    handlers.map(({ build_id }) => build_id),
  );
}

/** Of the builds that an apply has asked for. */
export async function cratesOfApply(store: Store, applyId: string): Promise<BuildingCrates[]> {
  const builds = await store
    .knex('builds')
    .join('applies', 'applies.request_id', 'builds.request_id')
    .where({ 'applies.id': applyId })
    .whereIn('builds.state', ['queued', 'running'])
    .select<{ id: string }[]>('builds.id');
  return cratesOfBuilds(
    store,
    builds.map(({ id }) => id),
  );
}

/** Tells those who follow builds, imports and applies that the crates of these builds have got on. */
export async function announceCrates(store: Store, builds: readonly string[]): Promise<void> {
  for (const id of builds) store.announce('build', id);
  const { rows } = await store.knex.raw<{ rows: { topic: 'import' | 'apply'; id: string }[] }>(
    `WITH changed_imports AS (
       UPDATE imports SET version = version + 1
        WHERE finished_at IS NULL AND id IN (
                SELECT import_id FROM import_handlers WHERE state = 'compiling' AND build_id = ANY(:builds::uuid[]))
       RETURNING id),
     changed_applies AS (
       UPDATE applies SET version = version + 1
        WHERE state = 'compiling' AND request_id IN (SELECT request_id FROM builds WHERE id = ANY(:builds::uuid[]))
       RETURNING id)
     SELECT 'import' AS topic, id FROM changed_imports UNION ALL SELECT 'apply', id FROM changed_applies`,
    { builds: [...builds] },
  );
  for (const { topic, id } of rows) store.announce(topic, id);
}
