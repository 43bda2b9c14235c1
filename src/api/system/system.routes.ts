/** Health and statistics. */
import { CROWDED } from '../../model/log-entry.js';
import { liveNodes } from '../../store/nodes.js';
import { readStatistics } from '../../store/statistics.js';
import { VERSION } from '../../util/version.js';
import { defineRoute } from '../route/route.js';
import { Parts, partsOf } from './parts.js';
import { healthOf } from './stored-health.js';
import { Health, NODE_KINDS, Nodes, Statistics } from './system.schema.js';
import { hostWarning, keyWarning } from './warnings.js';

export const systemRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/',
    permission: 'authenticated',
    summary: 'List what this server has beside the resources',
    tag: 'System',
    data: Parts,
    handle: async (_request, { config }) => partsOf(config),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/health',
    permission: 'public',
    summary: 'Tell whether the service is up, and what workers are preparing',
    tag: 'System',
    data: Health,
    handle: async (_request, { store, secrets, config }) => {
      const rotatesTo = config.SECRET_KEY_PREVIOUS === undefined ? undefined : secrets.keyIds[0];
      const { left, logBytes, ...health } = await healthOf(store, rotatesTo);
      const used = logBytes === null ? null : logBytes / (config.LOG_RETENTION_MB * 1024 * 1024);
      const log = {
        hour_percent: used === null ? null : Math.round(used * 100),
        leaves_out: used !== null && used >= CROWDED,
      };
      const key_rotation = rotatesTo === undefined ? null : { left };
      return { status: 'healthy' as const, version: VERSION, ...health, log, key_rotation };
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/stats',
    permission: 'statistics:read',
    summary: 'Count endpoints and requests',
    tag: 'System',
    data: Statistics,
    handle: async ({ scope }, { store }) => ({
      ...(await readStatistics(store, scope)),
      uptime_seconds: Math.floor(process.uptime()),
    }),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/nodes',
    permission: 'metrics:read',
    isOfInstallation: true,
    summary: 'List the live processes, count the jobs in the queues, and say what the operator should change',
    tag: 'System',
    data: Nodes,
    handle: async ({ header }, { store, queues, config }) => {
      const [nodes, depths, host] = await Promise.all([
        Promise.all(NODE_KINDS.map((kind) => liveNodes(store, kind))),
        queues.depths(),
        hostWarning(store, header('host') ?? ''),
      ]);
      return {
        nodes: nodes.flat().map(({ id, kind, hostname, pid, info, started_at }) => {
          const { sandbox } = info;
          const level = typeof sandbox === 'string' ? sandbox : null;
          return { id, kind, hostname, pid, sandbox: level, started_at: started_at.toISOString() };
        }),
        queues: depths ? depths.map(({ queue, state, jobs }) => ({ queue, state, jobs })) : null,
        warnings: [keyWarning(config), host].filter((warning) => warning !== undefined),
      };
    },
  }),
];
