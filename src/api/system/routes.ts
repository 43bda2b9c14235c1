/** Health and statistics. */
import { readStatistics } from '../../store/statistics.js';
import { VERSION } from '../../version.js';
import { defineRoute } from '../route.js';
import { sandboxLevels } from './sandbox-levels.js';
import { Health, Statistics } from './schema.js';

export const systemRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/health',
    summary: 'Tell whether the service is up',
    tag: 'System',
    data: Health,
    handle: async (_request, { store }) => ({
      status: 'healthy' as const,
      version: VERSION,
      sandbox: await sandboxLevels(store),
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
