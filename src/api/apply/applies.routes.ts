/** Applies: what came of them, how far they are, and their rollback. */
import { Type } from '@sinclair/typebox';
import { requireFound } from '../../errors.js';
import { ownerOfActor } from '../../model/owner.js';
import { findApply, listApplies } from '../../store/applies.js';
import { progressReply } from '../response/progress-events.js';
import { listOptions, PageQuery, pageReply } from '../route/paging.js';
import { defineRoute } from '../route/route.js';
import { Flag, IdParams, isSet } from '../route/schemas.js';
import { applySource } from './apply.events.js';
import { ApplySummaryView, ApplyView, presentApplySummary, showApply } from './apply.present.js';
import { NoWait, PlanHash, PlanView } from './apply.schema.js';
import { requireReadable } from './permissions.js';
import { shownInFull } from './plan.present.js';
import { PLAN_TURNS } from './plan-apply.js';
import { planCheckedRollback } from './rollback.js';
import { requireSamePlan, startApply } from './start-apply.js';

const tag = 'Apply';
const DEFAULT_LIMIT = 100;

/** Errors of what carries out a plan. */
export const APPLY_ERRORS = [
  ...([
    'plan_changed',
    'apply_busy',
    'busy',
    'no_worker',
    'no_gateway',
    'compile_failed',
    'compile_timeout',
    'crates_timeout',
    'build_cancelled',
  ] as const),
  ...(['handler_start_failed', 'endpoint_has_no_code', 'secret_key_mismatch', 'route_taken'] as const),
] as const;

export const ACCEPTED = {
  202: { description: 'The apply continues; `Location` is its URL', data: ApplyView },
} as const;

export const appliesRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/applies',
    permission: 'endpoints:read',
    summary: 'List applies, the newest first',
    tag,
    query: Type.Object(PageQuery),
    data: Type.Array(ApplySummaryView),
    handle: async (request, { store }) => {
      const page = await listApplies(store, listOptions(request, DEFAULT_LIMIT));
      return pageReply(request.raw, page, page.rows, presentApplySummary);
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/applies/{id}',
    permission: 'endpoints:read',
    summary: 'Show an apply: its plan, how far it is, and what came of it',
    tag,
    params: IdParams,
    data: ApplyView,
    handle: async ({ params: { id }, principal }, { store }) => showApply(store, id, principal),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/applies/{id}/events',
    permission: 'endpoints:read',
    summary: 'Follow an apply: server-sent events `progress`, then `done`',
    tag,
    params: IdParams,
    envelope: 'bare',
    data: Type.String({ description: 'Server-sent events' }),
    produces: 'text/event-stream',
    alternatives: {
      204: { description: 'The client has received the event `done`; browsers stop reconnecting' },
    },
    handle: ({ params: { id }, ...request }, deps) =>
      progressReply(deps, request, applySource(deps.store, id, request.principal)),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/applies/{id}/rollback',
    permission: 'endpoints:write',
    summary: 'Roll back what an apply has changed; with `dry_run=true`, plan that',
    tag,
    params: IdParams,
    query: Type.Object({
      dry_run: Flag('Say what would be changed; change nothing'),
      plan_hash: PlanHash,
      no_wait: NoWait,
    }),
    data: Type.Union([ApplyView, PlanView]),
    alternatives: ACCEPTED,
    errors: ['apply_not_committed', 'apply_conflict', ...APPLY_ERRORS],
    handle: async ({ params: { id }, query, principal, markAsDryRun, ...request }, deps) => {
      const plan = await PLAN_TURNS.run(ownerOfActor(principal.actor), async () => {
        const apply = requireFound(await findApply(deps.store, id), 'apply', id);
        return planCheckedRollback(deps, apply, principal);
      });
      requireReadable(
        principal,
        plan.changes.flatMap(({ before, after }) => [before, after].filter((object) => object !== null)),
      );
      if (isSet(query.dry_run)) {
        markAsDryRun();
        return shownInFull(plan, deps, principal);
      }
      requireSamePlan(plan, query.plan_hash);
      // What it brings back is stored.
      const how = { rollbackOf: id, noWait: isSet(query.no_wait), contents: new Map() };
      return startApply(deps, plan, how, { ...request, principal });
    },
  }),
];
