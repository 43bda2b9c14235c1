/** The progress of an apply as server-sent events, read from the database: clients may connect late and reconnect. */
import { applyProgress, findApply } from '../../store/applies.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { event, KEEPALIVE, KEEPALIVE_MS } from '../event-stream.js';
import type { Principal } from '../principal.js';
import { presentApply } from './present-apply.js';

/** The events of an apply after a version of it. The last one is `done`. */
export async function* applyEvents(
  { store, changes }: ApiDependencies,
  id: string,
  after: number,
  principal: Pick<Principal, 'permissions'>,
  closed: AbortSignal,
): AsyncGenerator<string, undefined, void> {
  let seen = after;
  for (;;) {
    const read = async () => {
      const current = await applyProgress(store, id);
      if (!current) throw new Error(`The apply ${id} was deleted`);
      return current.version > seen || current.finished_at ? current : undefined;
    };
    const current = await changes.waitFor('apply', id, KEEPALIVE_MS, read, closed);
    if (!current) {
      yield KEEPALIVE;
      continue;
    }
    const { state, progress, version, finished_at } = current;
    yield event('progress', version, { state, progress });
    seen = version;
    if (!finished_at) continue;
    const apply = await findApply(store, id);
    if (!apply) throw new Error(`The apply ${id} was deleted`);
    yield event('done', seen, presentApply(apply, principal));
    return undefined;
  }
}
