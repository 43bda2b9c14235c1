/** The state that live gateways and workers report, for the health check. */

import pTimeout from 'p-timeout';
import type { Preparation } from '../../model/preparation.js';
import type { SandboxLevel } from '../../sandbox/sandbox.js';
import type { Database } from '../../store/database.js';
import { liveNodes, type Node, preparationsOf } from '../../store/nodes.js';

export interface NodeHealth {
  /** The weakest level of the live nodes of each kind; null when none is alive or known yet. */
  readonly sandbox: { readonly gateway: SandboxLevel | null; readonly worker: SandboxLevel | null };
  /** Builds that workers need before they can compile handlers. */
  readonly preparing: Preparation[];
}

/** The health check must respond even if the database does not. */
const READ_TIMEOUT_MS = 250;
const FRESH_MS = 1_000;

/** The last state read from a database. */
class CachedHealth {
  readonly #store: Database;
  #health: NodeHealth = { sandbox: { gateway: null, worker: null }, preparing: [] };
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(store: Database) {
    this.#store = store;
  }

  /** The current state, or the last known one while the database does not respond. */
  async get(): Promise<NodeHealth> {
    if (performance.now() - this.#readAt > FRESH_MS) {
      this.#reading ??= this.#read().finally(() => {
        this.#reading = undefined;
      });
      await pTimeout(this.#reading, { milliseconds: READ_TIMEOUT_MS, fallback: () => undefined });
    }
    return this.#health;
  }

  async #read(): Promise<void> {
    try {
      const [gateways, workers] = await Promise.all([
        liveNodes(this.#store, 'gateway'),
        liveNodes(this.#store, 'worker'),
      ]);
      this.#health = {
        sandbox: { gateway: weakestSandbox(gateways), worker: weakestSandbox(workers) },
        preparing: preparationsOf(workers),
      };
      this.#readAt = performance.now();
    } catch {
      // Routes that need the database report its errors; health responds without it.
    }
  }
}

function weakestSandbox(nodes: readonly Node[]): SandboxLevel | null {
  if (nodes.length === 0) return null;
  return nodes.every(({ info }) => info['sandbox'] === 'bubblewrap') ? 'bubblewrap' : 'limits';
}

const cached = new WeakMap<Database, CachedHealth>();

export function nodeHealth(store: Database): Promise<NodeHealth> {
  const health = cached.get(store) ?? new CachedHealth(store);
  cached.set(store, health);
  return health.get();
}
