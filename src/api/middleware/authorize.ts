/** The one place that decides whether somebody may send a request: each route, and each page, names its permission. */
import { AppError } from '../../errors.js';
import type { RoutePermission } from '../../model/permission.js';
import { CRATES_PATH } from '../access/crates-path.js';
import { requirePermission } from '../access/principal.js';
import type { ApiContext, Next } from '../route/context.js';

/** What is served besides the routes of the API. All other paths answer 404 to whoever is known. */
export const PAGES: readonly { readonly path: string; readonly permission: RoutePermission }[] = [
  { path: '/', permission: 'public' },
  { path: '/ui', permission: 'public' },
  { path: '/metrics', permission: 'metrics:read' },
  { path: '/queues', permission: 'queues:write' },
  { path: CRATES_PATH, permission: 'authenticated' },
];

export function authorize(context: ApiContext, next: Next): Promise<unknown> {
  const { route, principal } = context.state;
  const needed = route ? route.permission : permissionOfPage(context.path);
  if (needed === 'public') return next();
  if (!principal) throw new AppError('unauthorized', 'The request needs a credential');
  const isOwn = route?.isOpenToOwner === true && context.params['id'] === principal.user?.id;
  if (needed !== 'authenticated' && !isOwn) requirePermission(principal, needed);
  if (route?.isOfInstallation && principal.scope)
    throw new AppError('forbidden', 'Only for those who are not limited to certain domains');
  return next();
}

function permissionOfPage(path: string): RoutePermission {
  const page = PAGES.find(
    (one) => path === one.path || (one.path !== '/' && path.startsWith(`${one.path}/`)),
  );
  return page?.permission ?? 'authenticated';
}
