/** The state that live gateways and workers report, and how a change of the key goes on, for the health check. */

import pTimeout from 'p-timeout';
import type { Preparation } from '../../model/preparation.js';
import { SANDBOX_LEVELS, type SandboxLevel } from '../../sandbox/confinement.js';
import { sealedPrefix } from '../../secrets/secret-box.js';
import type { Database } from '../../store/database.js';
import { sizeOfLogPartition } from '../../store/log-partitions.js';
import { liveNodes, type Node, preparationsOf } from '../../store/nodes.js';
import { countSealedOtherwise } from '../../store/sealed-values.js';

export interface StoredHealth {
  /** The weakest level of the live nodes of each kind; null when none is alive or known yet. */
  readonly sandbox: { readonly gateway: SandboxLevel | null; readonly worker: SandboxLevel | null };
  /** The compilers of the live workers, each kind once. */
  readonly rustc: Compiler[];
  /** Builds that workers need before they can compile handlers. */
  readonly preparing: Preparation[];
  /** What entries of the log of this hour take, bytes; null when that is not known yet. */
  readonly logBytes: number | null;
  /** While the key is rotated: values that it has not sealed; null when that is not known yet. */
  readonly left: number | null;
}

/** A compiler of handlers, as workers say it. */
interface Compiler {
  readonly version: string;
  readonly host: string | null;
}

/** The health check must respond even if the database does not. */
const READ_TIMEOUT_MS = 250;
const FRESH_MS = 1_000;

/** The last state read from a database. */
class CachedHealth {
  readonly #store: Database;
  readonly #rotatesTo: string | undefined;
  #health: StoredHealth = {
    sandbox: { gateway: null, worker: null },
    rustc: [],
    preparing: [],
    logBytes: null,
    left: null,
  };
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(store: Database, rotatesTo: string | undefined) {
    this.#store = store;
    this.#rotatesTo = rotatesTo;
  }

  /** The current state, or the last known one while the database does not respond. */
  async get(): Promise<StoredHealth> {
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
      const [gateways, workers, logBytes, left] = await Promise.all([
        liveNodes(this.#store, 'gateway'),
        liveNodes(this.#store, 'worker'),
        sizeOfLogPartition(this.#store),
        this.#rotatesTo === undefined
          ? null
          : countSealedOtherwise(this.#store, sealedPrefix(this.#rotatesTo)),
      ]);
      this.#health = {
        sandbox: { gateway: weakestSandbox(gateways), worker: weakestSandbox(workers) },
        rustc: compilersOf(workers),
        preparing: preparationsOf(workers),
        logBytes,
        left,
      };
      this.#readAt = performance.now();
    } catch {
      // Routes that need the database report its errors; health responds without it.
    }
  }
}

function weakestSandbox(nodes: readonly Node[]): SandboxLevel | null {
  if (nodes.length === 0) return null;
  const levels = nodes.map(({ info }) => SANDBOX_LEVELS.indexOf(info['sandbox'] as SandboxLevel));
  // A node of another version may report a level that this one does not know.
  return levels.includes(-1) ? 'limits' : (SANDBOX_LEVELS[Math.max(...levels)] ?? 'limits');
}

/** One of another version need not say its host. */
function compilersOf(workers: readonly Node[]): Compiler[] {
  const all = workers.flatMap(({ info: { rustc: version, host } }) =>
    typeof version === 'string' ? [{ version, host: typeof host === 'string' ? host : null }] : [],
  );
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
}

const cached = new WeakMap<Database, CachedHealth>();

/** @param rotatesTo the id of the present key, while the previous one is accepted */
export function healthOf(store: Database, rotatesTo: string | undefined): Promise<StoredHealth> {
  const health = cached.get(store) ?? new CachedHealth(store, rotatesTo);
  cached.set(store, health);
  return health.get();
}
