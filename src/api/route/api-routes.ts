/** Finds the route of a request. Unknown paths are 404, unknown methods 405 with `Allow`, both in the envelope. */
import Router, { type Layer } from '@koa/router';
import { AppError } from '../../errors.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { lowerIds } from '../request/ids.js';
import type { ApiContext, ApiState, Next } from './context.js';
import type { Route } from './route.js';

/** Serves the routes. */
export interface ApiRoutes {
  /** Stores the matched route in the state of the request, for later middlewares. */
  readonly match: (context: ApiContext, next: Next) => Promise<unknown>;
  /**
   * Answers 405 for other methods of a path that everybody may use. Of other paths, only those who are known are told
   * which methods they have: `dispatch` does so, after the guards.
   */
  readonly refuseMethod: (context: ApiContext, next: Next) => Promise<unknown>;
  /** Runs the route. Guards are mounted between `match` and `dispatch`. */
  readonly dispatch: (context: ApiContext) => Promise<void>;
}

export function createApiRoutes(routes: readonly Route[], deps: ApiDependencies): ApiRoutes {
  const router = new Router<ApiState>({ sensitive: true });
  const byLayer = new Map<Layer<ApiState>, Route>();
  const publicPaths = new Set<string>();
  for (const route of routes) {
    if (route.permission === 'public') publicPaths.add(route.path);
    const layer = router.register(routerPath(route.path), [route.method], () => undefined);
    byLayer.set(layer as Layer<ApiState>, route);
  }

  return {
    match: (context, next) => {
      const [layer] = router.match(context.path, context.method).pathAndMethod;
      const route = layer && byLayer.get(layer);
      if (layer && route) {
        context.state.route = route;
        const params = layer.params(context.path, layer.captures(context.path));
        lowerIds(route.params, params);
        context.params = params;
      }
      return next();
    },
    refuseMethod: (context, next) => {
      if (!context.state.route && publicPaths.has(context.path)) throw methodNotAllowed(context);
      return next();
    },
    dispatch: async (context) => {
      const { route } = context.state;
      if (route) return route.serve(context, context.params as Record<string, string>, deps);
      throw methodNotAllowed(context);
    },
  };

  /** What is wrong with the method of a path, or that there is none. */
  function methodNotAllowed(context: ApiContext): AppError {
    const allowed = router.match(context.path, context.method).path.flatMap(({ methods }) => methods);
    if (allowed.length === 0) return new AppError('not_found', `There is nothing at ${context.path}`);
    const allow = [...new Set(allowed)].sort().join(', ');
    context.set('Allow', allow);
    return new AppError('method_not_allowed', `${context.path} has ${allow}, not ${context.method}`);
  }
}

/**
 * Converts `/api/domains/{id}` to the syntax of the router, `/api/domains/:id`; `{key...}` matches slashes too. A slash
 * at the end may be left out, as one may be added to the others.
 */
function routerPath(path: string): string {
  return path
    .replace(/\{(\w+)\.\.\.\}/g, '*$1')
    .replace(/\{(\w+)\}/g, ':$1')
    .replace(/\/$/, '{/}');
}
