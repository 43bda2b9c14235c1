/** What the writing of an apply needs besides its changes. */
import { isDeepStrictEqual } from 'node:util';
import type { InstallationObject, ServiceObject } from '../apply/objects.js';
import type { Origin } from '../model/actor.js';
import type { FileRef } from '../model/source-files.js';
import type { DesiredDeployment } from './endpoint-runs.js';
import type { NextRun } from './schedules.js';

/** An object of an apply, before and after it. */
export interface ObjectWrite<T extends InstallationObject> {
  /** The id of its row. */
  readonly id: string;
  /** Null: it is new. */
  readonly before: T | null;
  readonly after: T;
}

/** What a new version of an endpoint was compiled to. */
export interface CompiledHandler {
  readonly sourceKey: string;
  readonly buildId: string;
  readonly artifact: string;
  /** The lock that its crates were resolved to; null: not known. */
  readonly resolvedLock: FileRef | null;
}

/** A config as it is stored, and the secrets that it refers to. */
export interface SealedConfig {
  readonly sealed: string;
  readonly secrets: readonly string[];
}

/** What is known besides the changes. */
export interface WriteContext {
  readonly applyId: string;
  readonly origin: Origin;
  /** What was compiled for the endpoints whose newest code is to serve, by their ids. */
  readonly compiled: ReadonlyMap<string, CompiledHandler>;
  /** In a rollback: what endpoints served before the apply, by their ids. */
  readonly served?: ReadonlyMap<string, Pick<DesiredDeployment, 'targets' | 'sticky'>>;
  /** When an apply is undone: the secrets of the installation that were changed since it began. */
  readonly changedSecrets?: () => ReadonlySet<string>;
  /** Gets what does not come back as it was. */
  readonly warnings: Set<string>;
  readonly nextRun: NextRun;
  /**
   * Encrypts a config.
   * @param stored the one that is stored now, for values that stay
   */
  sealConfig(id: string, service: ServiceObject, stored: string | undefined): SealedConfig;
  /** Called with the schedules that the queue has to be told of. */
  scheduled(ids: readonly string[]): void;
}

/** The members that change; of a new object, all. */
export function changed<T extends object, K extends keyof T>(
  before: T | null,
  after: T,
  names: readonly K[],
): Partial<Pick<T, K>> {
  const different = names.filter((name) => !before || !isDeepStrictEqual(before[name], after[name]));
  return Object.fromEntries(different.map((name) => [name, after[name]])) as Partial<Pick<T, K>>;
}
