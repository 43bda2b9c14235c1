/** Which version a rollback without a number goes back to. */
import type { Deployment } from '../../store/deployments.js';

/**
 * The different version that served last before the current one. A canary goes back to the version that served alone
 * before it.
 * @param history the newest first
 * @returns undefined when there is none
 */
export function versionToRollBackTo(history: readonly Deployment[]): number | undefined {
  const served = history
    .filter(({ kind, outcome }) => kind !== 'stop' && kind !== 'crash' && outcome === 'succeeded')
    .map(({ targets }) => targets.map(({ version }) => version));
  const [current, ...earlier] = served;
  if (!current) return undefined;
  const isCanary = current.length > 1;
  const alone = earlier.filter((versions) => versions.length === 1).flat();
  return alone.find((version) => isCanary || version !== current[0]);
}
