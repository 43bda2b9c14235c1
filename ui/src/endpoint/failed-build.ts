/** Why the draft does not compile. */
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import type { Build, Endpoint } from '../generated/routes.js';

/** The build that has failed, where it is the reason for the state of an endpoint. */
export function useFailedBuild({ status, build_id, last_error }: Endpoint): Build | undefined {
  const isWanted = status === 'error' && build_id !== null && may('builds:read');
  const { data } = useQuery('GET /api/builds/{id}', isWanted ? { params: { id: build_id } } : undefined);
  const isReason = isWanted && data?.state === 'failed' && data.error === last_error;
  return isReason ? data : undefined;
}
