/** What confines the code of strangers, on all machines, for the health check. */
import type { SandboxLevel } from '../../sandbox/sandbox.js';
import type { Database } from '../../store/database.js';
import { liveNodes } from '../../store/nodes.js';
import { withinTime } from '../../within-time.js';

/** The weakest level of the live nodes of each kind; null when none is alive, or none was seen yet. */
export interface SandboxLevels {
  readonly gateway: SandboxLevel | null;
  readonly worker: SandboxLevel | null;
}

/** A health check is not to wait for a database that does not answer. */
const PATIENCE_MS = 250;
const FRESH_MS = 1_000;

/** What was last seen in one database. */
class Seen {
  #levels: SandboxLevels = { gateway: null, worker: null };
  #lookedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;

  constructor(private readonly store: Database) {}

  /** As it was a moment ago, or when the database last answered. */
  async levels(): Promise<SandboxLevels> {
    if (performance.now() - this.#lookedAt > FRESH_MS) {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined;
      });
      await withinTime(this.#looking, PATIENCE_MS);
    }
    return this.#levels;
  }

  async #look(): Promise<void> {
    const level = async (kind: 'gateway' | 'worker') =>
      weakest((await liveNodes(this.store, kind)).map(({ info }) => info['sandbox']));
    try {
      const [gateway, worker] = await Promise.all([level('gateway'), level('worker')]);
      this.#levels = { gateway, worker };
      this.#lookedAt = performance.now();
    } catch {
      // A database that is away says itself so wherever it is needed; health goes on without.
    }
  }
}

function weakest(levels: readonly unknown[]): SandboxLevel | null {
  if (levels.length === 0) return null;
  return levels.every((level) => level === 'bubblewrap') ? 'bubblewrap' : 'limits';
}

const seen = new WeakMap<Database, Seen>();

export function sandboxLevels(store: Database): Promise<SandboxLevels> {
  const known = seen.get(store) ?? new Seen(store);
  seen.set(store, known);
  return known.levels();
}
