/** Health and statistics. */
import { readStatistics } from '../../store/statistics.js';
import { VERSION } from '../../util/version.js';
import { defineRoute } from '../route.js';
import { nodeHealth } from './node-health.js';
import { Parts, partsOf } from './parts.js';
import { Health, Statistics } from './schema.js';

export const systemRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/',
    summary: 'List what this server has beside the resources; `/` shows the same as a page',
    tag: 'System',
    data: Parts,
    handle: async (_request, { config }) => partsOf(config),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/health',
    summary: 'Tell whether the service is up, and what workers are preparing',
    tag: 'System',
    data: Health,
    handle: async (_request, { store }) => ({
      status: 'healthy' as const,
      version: VERSION,
      ...(await nodeHealth(store)),
    }),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/stats',
    summary: 'Count endpoints and requests',
    tag: 'System',
    data: Statistics,
    handle: async (_request, { store }) => ({
      ...(await readStatistics(store)),
      uptime_seconds: Math.floor(process.uptime()),
    }),
  }),
];
