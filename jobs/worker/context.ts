/** What the jobs and the periodic work of a worker need. */
import type { DependencySets } from '../../src/build/dependency-sets.js';
import type { Config } from '../../src/config.js';
import type { Gateways } from '../../src/internal/gateways.js';
import type { Database } from '../../src/store/database.js';
import type { AcmeContext } from '../acme.js';
import type { AlertContext } from '../alerts.js';
import type { ApplyContext } from '../apply/context.js';
import type { ArtifactSweep } from '../artifact-sweep.js';
import type { CompileContext } from '../compile.js';
import type { DeliveryContext } from '../deliver.js';
import type { Reseal } from '../reseal.js';

/** What one process has: each job and each task takes of it what it needs. */
export interface WorkerContext extends CompileContext, ApplyContext, DeliveryContext, AlertContext {
  readonly config: Config & { readonly DATABASE_URL: string };
  readonly store: Database;
  readonly gateways: Gateways;
  /** Most bytes of unfinished jobs and schedules of a domain. */
  readonly maxQueuedBytes: number;
  /** Undefined when no certificates are ordered. */
  readonly acme: AcmeContext | undefined;
  readonly sets: DependencySets;
  readonly sweep: ArtifactSweep;
  /** Undefined while there is no previous key. */
  readonly reseal: Reseal | undefined;
  /** The folder of what runs on this machine. */
  readonly runDir: string;
  /** Aborted when jobs that are still active have to end; another worker repeats them. */
  readonly interrupt: AbortSignal;
}
