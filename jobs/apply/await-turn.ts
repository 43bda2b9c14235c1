/** The second step of an apply: what is compiled waits until no other apply changes the installation. */
import type { LifecycleDependencies } from '../../src/lifecycle/lifecycle-dependencies.js';
import { busy, requireCurrent } from '../../src/store/applies.js';
import { earlierApplies, takeTurn } from '../../src/store/apply-turns.js';
import type { ApplyTry } from './context.js';

/** Between two looks at the others, where nothing is announced meanwhile. */
const LOOK_MS = 1_000;

/** Resolves when it has its turn. @throws AppError apply_busy when it does not wait; AttemptLost */
export async function awaitTurn(
  { store, changes }: LifecycleDependencies,
  { apply, signal, progress }: ApplyTry,
): Promise<void> {
  let most = 0;
  let shown: number | undefined;
  for (;;) {
    signal.throwIfAborted();
    // Otherwise it would wait for ever: its turn is that of another attempt.
    await requireCurrent(store, apply);
    const earlier = await earlierApplies(store, apply.id, undefined);
    const [first] = earlier;
    if (first && apply.no_wait) throw busy(first.id);
    const left = earlier.length;
    most = Math.max(most, left);
    if (left !== shown) await progress('waiting', 'earlier', most - left, most);
    shown = left;
    const hasTurn = async () => (await takeTurn(store, apply)) || undefined;
    if (await changes.waitFor('apply', first?.id ?? apply.id, LOOK_MS, hasTurn, signal)) return;
  }
}
