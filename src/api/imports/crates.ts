/** The crates of a bundle, which are for all its handlers. */
import type { Config } from '../../config.js';
import type { ImportedApi } from '../../import/imported-api.js';
import { requireCrateSources } from '../../model/crate-sources.js';

/** @throws AppError invalid_dependency when a handler cannot have them, or the operator does not allow them */
export function requireCratesOf(
  { dependencies, endpoints }: ImportedApi,
  { CARGO_SOURCES: allowed }: Pick<Config, 'CARGO_SOURCES'>,
): void {
  for (const { handler } of endpoints)
    if (handler) requireCrateSources('dependencies', dependencies, { files: handler.files, allowed });
}
