/** The parts of the service, listed for those who only know the address of the management API. */
import { type Static, Type } from '@sinclair/typebox';
import type { Config } from '../../config.js';
import { AppError } from '../../errors.js';
import type { ApiContext, Next } from '../context.js';

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

/** Serves the list as a page at `/`. */
export function startPage(config: Pick<Config, 'GATEWAY_PORT'>) {
  const page = render(partsOf(config));
  return (context: ApiContext, next: Next): Promise<unknown> => {
    if (context.path !== '/') return next();
    if (!['GET', 'HEAD'].includes(context.method)) {
      context.set('Allow', 'GET, HEAD');
      throw new AppError('method_not_allowed', `/ has GET, HEAD, not ${context.method}`);
    }
    context.set(
      'Content-Security-Policy',
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    context.type = 'html';
    context.body = page;
    return Promise.resolve();
  };
}

/** No part of it comes from a request, so nothing is escaped. */
function render({ parts, gateway, documentation }: Static<typeof Parts>): string {
  const links = parts.map(({ name, path }) => `<li><a href="${path}">${name}</a></li>`);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Edge Gateway</title></head>
<body>
<h1>Edge Gateway</h1>
<p>This is the management API. Endpoints are served by the gateway on port ${gateway.port}.</p>
<ul>
${links.join('\n')}
</ul>
<p>Documentation: ${documentation} and the folder docs of the installation.</p>
</body>
</html>
`;
}
