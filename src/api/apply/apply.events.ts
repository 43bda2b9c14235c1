/** The progress of an apply: its state, how many handlers are done, the crates they wait for, and at last all of it. */
import { requireFound } from '../../errors.js';
import { type Apply, applyProgress } from '../../store/applies.js';
import { earlierApplies } from '../../store/apply-turns.js';
import { cratesOfApply } from '../../store/build-crates.js';
import type { Store } from '../../store/database.js';
import type { Principal } from '../access/principal.js';
import type { ProgressSource } from '../response/progress-events.js';
import { showApply } from './apply.present.js';

type Progress = Pick<Apply, 'state' | 'progress' | 'version' | 'finished_at'>;

export function applySource(
  store: Store,
  id: string,
  principal: Pick<Principal, 'permissions' | 'scope'>,
): ProgressSource<Progress> {
  return {
    ...{ topic: 'apply', id },
    read: async () => requireFound(await applyProgress(store, id), 'apply', id),
    progressOf: async ({ state, progress }) => ({
      ...{ state, progress },
      earlier: state === 'waiting' ? await earlierApplies(store, id, principal.scope) : [],
      crates: state === 'compiling' ? await cratesOfApply(store, id) : [],
    }),
    done: () => showApply(store, id, principal),
  };
}
