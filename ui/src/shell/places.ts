/** Where one can go: those pages whose objects one may read. */
import { may, me, type Permission } from '../api/session.js';

export interface Place {
  readonly name: string;
  readonly to: string;
  /** Undefined: for everybody. */
  readonly needs?: Permission;
  /** Other words by which it is looked for. */
  readonly also?: string;
}

const PLACES: readonly Place[] = [
  { name: 'Overview', to: '/ui', also: 'home status requests errors' },
  { name: 'Endpoints', to: '/ui/endpoints', needs: 'endpoints:read', also: 'domains collections routes' },
  { name: 'Services', to: '/ui/services', needs: 'services:read', also: 'databases backends' },
  { name: 'Objects', to: '/ui/objects', needs: 'objects:read', also: 'files storage upload' },
  { name: 'Import', to: '/ui/import', needs: 'imports:write', also: 'openapi zip bundle' },
  { name: 'Apply', to: '/ui/apply', needs: 'endpoints:read', also: 'stack files edge.yaml diff undo' },
  { name: 'Export', to: '/ui/export', needs: 'endpoints:read', also: 'stack files edge.yaml download zip' },
  { name: 'Builds', to: '/ui/builds', needs: 'builds:read', also: 'compile' },
  { name: 'Queues', to: '/ui/queues', needs: 'queues:write', also: 'jobs dashboard' },
  { name: 'Logs', to: '/ui/logs', needs: 'logs:read', also: 'errors requests' },
  { name: 'Alerts', to: '/ui/alerts', needs: 'alerts:read', also: 'webhooks notifications' },
  { name: 'Access', to: '/ui/access', also: 'users tokens sessions audit password' },
  { name: 'API', to: '/ui/api', also: 'openapi reference documentation' },
];

export function visiblePlaces(): readonly Place[] {
  const isLimited = me.value?.domains !== null;
  return PLACES.filter(
    ({ needs, to }) => (needs === undefined || may(needs)) && !(isLimited && to === '/ui/queues'),
  );
}

/** Pages of one object whose address does not begin as that of the place they belong to. */
const BELONG_TO: readonly (readonly [begin: string, to: string])[] = [
  ['/ui/imports/', '/ui/import'],
  ['/ui/applies/', '/ui/apply'],
  ['/ui/domains/', '/ui/endpoints'],
  ['/ui/collections/', '/ui/endpoints'],
];

export function isCurrent({ to }: Place, location: string): boolean {
  const place = BELONG_TO.find(([begin]) => location.startsWith(begin))?.[1] ?? location;
  return to === '/ui' ? place === to : place === to || place.startsWith(`${to}/`);
}
