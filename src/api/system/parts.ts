/** The parts of the service, listed for those who only know the address of the management API. */
import { type Static, Type } from '@sinclair/typebox';
import type { Config } from '../../config.js';

export const Parts = Type.Object(
  {
    parts: Type.Array(Type.Object({ name: Type.String(), path: Type.String() }), {
      description: 'Paths of this server',
    }),
    gateway: Type.Object({ port: Type.Integer() }, { description: 'Where endpoints are served' }),
    documentation: Type.String({ description: 'File of the installation to begin with' }),
  },
  { title: 'Parts' },
);

export function partsOf({ GATEWAY_PORT }: Pick<Config, 'GATEWAY_PORT'>): Static<typeof Parts> {
  return {
    parts: [
      { name: 'Web UI', path: '/ui' },
      { name: 'API description (OpenAPI 3.1)', path: '/api/openapi.json' },
      { name: 'Health', path: '/api/health' },
      { name: 'Statistics', path: '/api/stats' },
      { name: 'Queues', path: '/queues' },
      { name: 'Metrics', path: '/metrics' },
      { name: 'This list as JSON', path: '/api/' },
    ],
    gateway: { port: GATEWAY_PORT },
    documentation: 'README.md',
  };
}
