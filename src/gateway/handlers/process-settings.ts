/** What a handler process is started with, besides its executable. */
import type { LimitsInForce } from '../../model/endpoint-limits.js';

/** A process is replaced when this changes. */
export interface ProcessSettings {
  readonly limits: LimitsInForce;
  /** Digest of its variables and secrets; null when there are none. */
  readonly environment: string | null;
}

/** Whether a process started with one of them fits the other too; the remaining limits are enforced by the front. */
export function isSameProcess(left: ProcessSettings, right: ProcessSettings): boolean {
  const limits = ['memory_mb', 'processes', 'open_files', 'cpu_percent'] as const;
  return (
    left.environment === right.environment && limits.every((name) => left.limits[name] === right.limits[name])
  );
}
