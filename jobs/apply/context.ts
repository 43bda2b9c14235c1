/** What the steps of an apply need. */
import type { Config } from '../../src/config.js';
import type { Gateways } from '../../src/internal/gateways.js';
import type { LifecycleDependencies } from '../../src/lifecycle/lifecycle-dependencies.js';
import type { AuditActor } from '../../src/model/actor.js';
import type { Queues } from '../../src/queues/queues.js';
import type { SecretBox } from '../../src/secrets/secret-box.js';
import type { Apply, ApplyState } from '../../src/store/applies.js';
import type { Logger } from '../../src/util/log.js';
import type { ThisWorker } from '../active-jobs.js';

/** The dependencies of the processor. */
export interface ApplyContext extends ThisWorker {
  readonly lifecycle: LifecycleDependencies;
  readonly config: Pick<Config, 'API_KEY'>;
  readonly queues: Queues;
  readonly gateways: Pick<Gateways, 'nodes' | 'prepare' | 'release'>;
  readonly secrets: SecretBox;
  /** Fingerprint of the toolchain of this worker. */
  readonly toolchain: string;
  readonly log: Logger;
}

/** One try of an apply, as its steps see it. */
export interface ApplyTry {
  readonly apply: Apply;
  readonly log: Logger;
  /** Aborts when the worker has to stop: another one resumes the apply. */
  readonly signal: AbortSignal;
  /** Records how far a step is; resolves at once when that is not the last of it. */
  progress(state: ApplyState, step: string, done: number, of: number): Promise<void>;
}

/** Who asked for an apply; the row of an earlier version may not say it. */
export function actorOfApply({ actor }: Pick<Apply, 'actor'>): AuditActor {
  return (actor ?? { kind: 'internal' }) as AuditActor;
}
