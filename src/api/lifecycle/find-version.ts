/** Versions that requests name. */
import { AppError } from '../../errors.js';
import type { Store } from '../../store/database.js';
import { type EndpointVersion, findVersion } from '../../store/versions.js';

/** @throws AppError not_found, which says where those are listed that exist */
export async function requireVersion(
  store: Store,
  endpointId: string,
  version: number,
): Promise<EndpointVersion> {
  const stored = await findVersion(store, endpointId, version);
  if (stored) return stored;
  const list = `GET /api/endpoints/${endpointId}/versions lists those that do, as does \`edge versions\``;
  throw new AppError('not_found', `The version ${version} does not exist; ${list}.`);
}
