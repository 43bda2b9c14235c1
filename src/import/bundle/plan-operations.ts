/** Merges the operations of a bundle's document with the routes of its manifest. No I/O. */
import type { EndpointMethod } from '../../model/endpoint-method.js';
import { RouteSyntaxError, routeBelow, routeKey, withoutBasePath } from '../../model/route-pattern.js';
import type { OpenApiDocument, Operation } from '../openapi/document.js';
import { pathParameters } from '../openapi/parameters.js';
import { bundleError } from './errors.js';
import type { ManifestRoute } from './manifest.js';

export interface PlannedOperation {
  readonly operation: Operation;
  /** The route of the manifest that names the handler. */
  readonly route: ManifestRoute | null;
}

const MAX_NAME_LENGTH = 255;

/** A route of the manifest, relative to the base path. */
interface RelativeRoute {
  readonly route: ManifestRoute;
  /** Relative to the base path, like the paths of operations. */
  readonly path: string;
}

/**
 * A route of the manifest stands for the operation that matches the same requests, whatever the names of its
 * parameters, or adds an operation. Its path may include the base path: it is stripped unless an operation has exactly
 * this path.
 * @throws AppError invalid_bundle
 */
export function planOperations(
  document: OpenApiDocument | null,
  routes: readonly ManifestRoute[],
): PlannedOperation[] {
  const basePath = document?.basePath ?? null;
  const operations = document?.operations ?? [];
  const described = new Set(operations.map(keyOf));
  const byKey = new Map<string, RelativeRoute>();
  for (const route of routes) {
    const relative = { route, path: pathBelow(basePath, route, described) };
    requireRoute(basePath, relative);
    const key = keyOf({ method: route.method, path: relative.path });
    const earlier = byKey.get(key)?.route;
    if (earlier) {
      throw bundleError(
        `${route.place} (${nameOf(route)}) matches the same requests as ` +
          `routes.${routes.indexOf(earlier)} (${nameOf(earlier)}); remove one of them.`,
      );
    }
    byKey.set(key, relative);
  }
  const planned = [
    ...operations.map((operation) => ({ operation, route: byKey.get(keyOf(operation))?.route ?? null })),
    ...[...byKey]
      .filter(([key]) => !described.has(key))
      .map(([, relative]) => ({ operation: operationOf(relative), route: relative.route })),
  ];
  checkNames(planned);
  return planned;
}

interface MethodAndPath {
  readonly method: EndpointMethod;
  readonly path: string;
}

/** Equal for operations that match the same requests. */
function keyOf({ method, path }: MethodAndPath): string {
  return `${method} ${routeKey(path)}`;
}

function pathBelow(basePath: string | null, route: ManifestRoute, described: ReadonlySet<string>): string {
  if (basePath === null || described.has(keyOf(route))) return route.path;
  return withoutBasePath(basePath, route.path) ?? route.path;
}

function requireRoute(basePath: string | null, { route, path }: RelativeRoute): void {
  try {
    routeBelow(basePath, path);
  } catch (thrown) {
    if (!(thrown instanceof RouteSyntaxError)) throw thrown;
    throw bundleError(
      `${route.place}: the route ${route.path} after the base path ${basePath ?? '/'} ${thrown.message}.`,
      { cause: thrown },
    );
  }
}

/** The operation of a route that the document does not have: only its path parameters are known. */
function operationOf({ route: { method }, path }: RelativeRoute): Operation {
  return {
    operationId: null,
    name: nameOf({ method, path }),
    method,
    path,
    description: null,
    parameters: pathParameters(path, []),
    body: null,
  };
}

function nameOf({ method, path }: MethodAndPath): string {
  return `${method} ${path}`;
}

/** Operations without an operationId are named `GET /pets`, which may also be the operationId of another one. */
function checkNames(planned: readonly PlannedOperation[]): void {
  const seen = new Set<string>();
  for (const { operation, route } of planned) {
    const { name } = operation;
    const place = route?.place ?? 'The manifest';
    if (name.length > MAX_NAME_LENGTH) {
      throw bundleError(
        `${place}: the route ${name} is too long to be the name of its endpoint (${MAX_NAME_LENGTH} characters).`,
      );
    }
    if (seen.has(name)) throw bundleError(`${place}: ${name} is also the operationId of another operation.`);
    seen.add(name);
  }
}
