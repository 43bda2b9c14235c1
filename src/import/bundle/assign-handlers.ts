/** Which handler stands for which operation: a route of the manifest says it, else the names do. Pure. */
import type { MatchProblem } from '../imported-api.js';
import { type HandlerFile, MANIFEST_NAME } from './contents.js';
import { matchHandlers } from './match-handlers.js';
import type { PlannedOperation } from './plan-operations.js';

export interface Assignment {
  readonly handlerOf: ReadonlyMap<PlannedOperation, HandlerFile>;
  readonly problems: readonly MatchProblem[];
  /** Handlers without an operation. */
  readonly unused: readonly HandlerFile[];
}

/**
 * A handler that a route names can serve other routes, and still is the handler of the operation it is called after.
 */
export function assignHandlers(
  planned: readonly PlannedOperation[],
  handlers: readonly HandlerFile[],
): Assignment {
  const byBase = new Map(handlers.map((handler) => [handler.base, handler]));
  const handlerOf = new Map<PlannedOperation, HandlerFile>();
  const problems: MatchProblem[] = [];
  for (const each of planned) {
    if (!each.route) continue;
    const handler = byBase.get(each.route.handler);
    if (handler) handlerOf.set(each, handler);
    else problems.push(missingHandler(each.operation.name, each.route.handler));
  }
  const unrouted = planned.filter(({ route }) => !route).map((plan) => ({ ...plan.operation, plan }));
  const { matched, problems: doubts, doubtful } = matchHandlers(unrouted, handlers);
  for (const [{ plan }, handler] of matched) handlerOf.set(plan, handler);
  const used = new Set(handlerOf.values());
  return {
    handlerOf,
    problems: [...problems, ...doubts],
    unused: handlers.filter((handler) => !used.has(handler) && !doubtful.has(handler)),
  };
}

function missingHandler(name: string, handler: string): MatchProblem {
  return {
    name,
    handler: `${handler}.rs`,
    message:
      `${MANIFEST_NAME} names ${handler}.rs as the handler of ${name}, but there is no such file ` +
      'in handlers/, at the root or in src/.',
  };
}
