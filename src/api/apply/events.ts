/** The progress of an apply: its state and how many handlers are done, and at last all of it. */
import { requireFound } from '../../errors.js';
import { type Apply, applyProgress, findApply } from '../../store/applies.js';
import type { Store } from '../../store/database.js';
import type { Principal } from '../principal.js';
import type { ProgressSource } from '../progress-events.js';
import { presentApply } from './present-apply.js';

type Progress = Pick<Apply, 'state' | 'progress' | 'version' | 'finished_at'>;

export function applySource(
  store: Store,
  id: string,
  principal: Pick<Principal, 'permissions'>,
): ProgressSource<Progress> {
  return {
    ...{ topic: 'apply', id },
    read: async () => requireFound(await applyProgress(store, id), 'apply', id),
    progressOf: ({ state, progress }) => ({ state, progress }),
    done: async () => presentApply(requireFound(await findApply(store, id), 'apply', id), principal),
  };
}
