/** The crates that builds wait for, while a worker builds them. */
import { cratesLine } from '../generated/crates-line.js';
import type { Build } from '../generated/routes.js';
import { Visible } from './visible.js';

/** A set of them, as events tell of it. */
export type BuildingCrates = NonNullable<Build['crates']> & {
  readonly builds?: readonly { readonly id: string; readonly endpoint: string | null }[];
};

/** Their progress, the crate that is compiled now, and the endpoints that wait. */
export function CratesProgress({ crates }: { readonly crates: BuildingCrates }) {
  const { builds = [] } = crates;
  const endpoints = builds.flatMap(({ endpoint }) => endpoint ?? []);
  return (
    <p class="muted">
      <Visible text={cratesLine(crates)} isOneLine />
      {crates.of !== null && (
        <>
          {' '}
          <progress class="inline" value={crates.crates} max={crates.of} aria-label="Crates that are built" />
        </>
      )}
      {endpoints.length > 0 && (
        <>
          {' for '}
          <Visible text={endpoints.join(', ')} isOneLine />
        </>
      )}
    </p>
  );
}
