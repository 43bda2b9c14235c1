/** Why the draft does not compile. */
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import type { Build, Endpoint } from '../generated/routes.js';

export interface DraftBuild {
  /** The build that was asked for last; undefined: not known yet, or not to be seen. */
  readonly current: Build | undefined;
  /** The same, where it has failed and is the reason for the state of the endpoint. */
  readonly failed: Build | undefined;
  /** It is not known yet whether that is the reason: the build is read, or goes on. */
  readonly isOpen: boolean;
}

/** The build of an endpoint. */
export function useBuild({ status, build_id, last_error }: Endpoint): DraftBuild {
  const mayRead = build_id !== null && may('builds:read');
  const { data, error } = useQuery(
    'GET /api/builds/{id}',
    mayRead ? { params: { id: build_id } } : undefined,
  );
  const current = mayRead ? data : undefined;
  const isReason = status === 'error' && current?.state === 'failed' && current.error === last_error;
  const isOpen = current ? current.finished_at === null : mayRead && error === undefined;
  return { current, failed: isReason ? current : undefined, isOpen };
}
