/** Which version a rollback without a number goes back to. */
import type { Deployment } from '../../store/deployments.js';

/**
 * The different version that served last before the current one, with the greater share if two did. A canary goes back
 * to the version that served alone before it.
 * @param history the newest first
 * @param existing the versions that are still there; others are passed over
 * @returns undefined when there is none
 */
export function versionToRollBackTo(
  history: readonly Deployment[],
  existing: ReadonlySet<number>,
): number | undefined {
  const served = history
    .filter(({ kind, outcome }) => kind !== 'stop' && kind !== 'crash' && outcome === 'succeeded')
    .map(({ targets }) =>
      [...targets].sort((left, right) => right.percent - left.percent).map(({ version }) => version),
    );
  const [current, ...earlier] = served;
  if (!current) return undefined;
  const isCanary = current.length > 1;
  const candidates = isCanary ? earlier.filter((versions) => versions.length === 1) : earlier;
  return candidates.flat().find((version) => existing.has(version) && (isCanary || version !== current[0]));
}
