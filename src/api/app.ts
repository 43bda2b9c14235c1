/** The management API as a Koa application. It does not listen: that is for the process, or the test, that made it. */
import Koa from 'koa';
import { AppError } from '../errors.js';
import { bindingRoutes } from './bindings/routes.js';
import { buildRoutes } from './builds/routes.js';
import { collectionRoutes } from './collections/routes.js';
import type { ApiContext, ApiState } from './context.js';
import { dashboard } from './dashboard.js';
import type { ApiDependencies } from './dependencies.js';
import { domainRoutes } from './domains/routes.js';
import { endpointRoutes } from './endpoints/routes.js';
import { importRoutes } from './imports/routes.js';
import { lifecycleRoutes } from './lifecycle/routes.js';
import { metrics } from './metrics.js';
import { accessLog } from './middleware/access-log.js';
import { apiKey } from './middleware/api-key.js';
import { errors } from './middleware/errors.js';
import { origin } from './middleware/origin.js';
import { requestId } from './middleware/request-id.js';
import { objectRoutes } from './objects/routes.js';
import { openApiRoute } from './openapi.js';
import type { Route } from './route.js';
import { createRouteTable } from './router.js';
import { serviceRoutes } from './services/routes.js';
import { systemRoutes } from './system/routes.js';

/** Every route of the API. A new resource adds its routes here. */
export const ROUTES: readonly Route[] = [
  ...systemRoutes,
  ...domainRoutes,
  ...collectionRoutes,
  ...endpointRoutes,
  ...lifecycleRoutes,
  ...buildRoutes,
  ...bindingRoutes,
  ...serviceRoutes,
  ...objectRoutes,
  ...importRoutes,
  openApiRoute(() => ROUTES),
];

export function createApp(deps: ApiDependencies): Koa<ApiState> {
  const app = new Koa<ApiState>();
  // Koa reports here what goes wrong once an answer is on its way, e.g. a body stream that fails.
  app.on('error', (error: unknown, context?: ApiContext) => {
    // The dashboard passes on what is an answer already, such as the 404 for one of its files.
    if (error instanceof AppError) return;
    const log = context?.state.log ?? deps.log;
    // A client that went away before it was done asking, or listening, is no fault of ours.
    const clientLeft = context !== undefined && (!context.req.complete || context.req.socket.destroyed);
    log[clientLeft ? 'info' : 'error']({ err: error }, clientLeft ? 'client left' : 'answer failed');
  });
  const routes = createRouteTable(ROUTES, deps);
  app.use(requestId(deps.log));
  app.use(accessLog(deps.log));
  app.use(routes.match);
  const { measure, serve: serveMetrics } = metrics(deps);
  app.use(measure);
  app.use(errors);
  app.use(origin(deps.config));
  app.use(apiKey(deps.config.API_KEY));
  // What is not a route of the API: behind the guards, before the 404.
  app.use(serveMetrics);
  app.use(dashboard(deps.queues));
  app.use(routes.dispatch);
  return app;
}
