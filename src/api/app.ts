/** The management API as a Koa application. The process or test that creates it listens. */
import Koa from 'koa';
import { AppError } from '../errors.js';
import { alertRoutes } from './alerts/alerts.routes.js';
import type { ApiDependencies } from './api-dependencies.js';
import { appliesRoutes } from './apply/applies.routes.js';
import { applyRoutes } from './apply/apply.routes.js';
import { openApiExportRoutes } from './apply/openapi.routes.js';
import { auditRoutes } from './audit/audit.routes.js';
import { bindingRoutes } from './bindings/bindings.routes.js';
import { buildRoutes } from './builds/builds.routes.js';
import { collectionRoutes } from './collections/collections.routes.js';
import { certificateRoutes } from './domains/certificates.routes.js';
import { domainRoutes } from './domains/domains.routes.js';
import { endpointRoutes } from './endpoints/endpoints.routes.js';
import { eventRoutes } from './events/events.routes.js';
import { importRoutes } from './imports/imports.routes.js';
import { jobRoutes } from './jobs/jobs.routes.js';
import { scheduleRoutes } from './jobs/schedules.routes.js';
import { invokeRoutes } from './lifecycle/invoke.routes.js';
import { lifecycleRoutes } from './lifecycle/lifecycle.routes.js';
import { versionRoutes } from './lifecycle/versions.routes.js';
import { logRoutes } from './logs/logs.routes.js';
import { accessLog } from './middleware/access-log.js';
import { audit } from './middleware/audit.js';
import { authenticate } from './middleware/authenticate.js';
import { authorize } from './middleware/authorize.js';
import { client } from './middleware/client.js';
import { errors } from './middleware/errors.js';
import { origin } from './middleware/origin.js';
import { requestId } from './middleware/request-id.js';
import { requireAudit } from './middleware/require-audit.js';
import { securityHeaders } from './middleware/security-headers.js';
import { nameRoutes } from './names/names.routes.js';
import { objectRoutes } from './objects/objects.routes.js';
import { overviewRoutes } from './overview/overview.routes.js';
import { crates } from './pages/crates.js';
import { dashboard } from './pages/dashboard.js';
import { metrics } from './pages/metrics.js';
import { queueConfirmation } from './pages/queue-confirmation.js';
import { ui } from './pages/ui.js';
import { policyRoutes } from './policies/policies.routes.js';
import { createApiRoutes } from './route/api-routes.js';
import type { ApiContext, ApiState } from './route/context.js';
import { openApiRoute } from './route/openapi.js';
import type { Route } from './route/route.js';
import { routingRoutes } from './routing/routing.routes.js';
import { seriesRoutes } from './series/series.routes.js';
import { serviceRoutes } from './services/services.routes.js';
import { oidcRoutes } from './sessions/oidc.routes.js';
import { sessionRoutes } from './sessions/sessions.routes.js';
import { systemRoutes } from './system/system.routes.js';
import { tokenRoutes } from './tokens/tokens.routes.js';
import { userRoutes } from './users/users.routes.js';
import { installationSecretRoutes } from './variables/installation-secrets.routes.js';
import { variableRoutes } from './variables/variables.routes.js';

/** Every route of the API. A new resource adds its routes here. */
export const ROUTES: readonly Route[] = [
  ...systemRoutes,
  ...eventRoutes,
  ...nameRoutes,
  ...domainRoutes,
  ...certificateRoutes,
  ...collectionRoutes,
  ...endpointRoutes,
  ...overviewRoutes,
  ...lifecycleRoutes,
  ...versionRoutes,
  ...invokeRoutes,
  ...jobRoutes,
  ...scheduleRoutes,
  ...routingRoutes,
  ...policyRoutes,
  ...variableRoutes,
  ...installationSecretRoutes,
  ...buildRoutes,
  ...logRoutes,
  ...seriesRoutes,
  ...alertRoutes,
  ...bindingRoutes,
  ...serviceRoutes,
  ...objectRoutes,
  ...importRoutes,
  ...applyRoutes,
  ...openApiExportRoutes,
  ...appliesRoutes,
  ...sessionRoutes,
  ...oidcRoutes,
  ...userRoutes,
  ...tokenRoutes,
  ...auditRoutes,
  openApiRoute(() => ROUTES),
];

export function createApp(deps: ApiDependencies): Koa<ApiState> {
  const app = new Koa<ApiState>();
  // Koa reports here errors after the response has started, e.g. of a body stream.
  app.on('error', (error: unknown, context?: ApiContext) => {
    // The dashboard reports some responses as errors, such as the 404 for one of its files.
    if (error instanceof AppError) return;
    const log = context?.state.log ?? deps.log;
    // A request that the client aborted is not an error of the service.
    const clientLeft = context !== undefined && (!context.req.complete || context.req.socket.destroyed);
    log[clientLeft ? 'info' : 'error']({ err: error }, clientLeft ? 'client left' : 'answer failed');
  });
  const routes = createApiRoutes(ROUTES, deps);
  app.use(requestId(deps.log));
  app.use(client(deps.config));
  app.use(accessLog(deps.log));
  app.use(securityHeaders);
  app.use(routes.match);
  const { measure, serve: serveMetrics } = metrics(deps);
  app.use(measure);
  app.use(errors);
  app.use(ui());
  app.use(audit(deps));
  app.use(origin(deps.config));
  app.use(routes.refuseMethod);
  app.use(authenticate(deps));
  app.use(authorize);
  // Paths outside the API: after the guards, before the 404.
  app.use(serveMetrics);
  app.use(crates(deps));
  app.use(requireAudit(deps));
  app.use(queueConfirmation(deps.queues));
  app.use(dashboard(deps.queues));
  app.use(routes.dispatch);
  return app;
}
