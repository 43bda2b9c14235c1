/** Applies as the API shows them. */
import { type Static, Type } from '@sinclair/typebox';
import { requireFound } from '../../errors.js';
import { APPLY_STATES, type ApplySummary } from '../../store/applies.js';
import { earlierApplies } from '../../store/apply-turns.js';
import type { Store } from '../../store/database.js';
import { findShownApply, type ObjectTraits, type ShownApply } from '../../store/shown-applies.js';
import type { Principal } from '../access/principal.js';
import { presenter } from '../response/present.js';
import { Id, nullable, oneOf, Timestamp } from '../route/schemas.js';
import { PlanView } from './apply.schema.js';
import { readPermissionsOf } from './permissions.js';

const Progress = Type.Record(Type.String(), Type.Object({ done: Type.Integer(), of: Type.Integer() }), {
  description:
    'How many handlers are `compiled` and `prepared`, how many applies `earlier` than this one have ended, and how many endpoints have `converged`',
});

const summary = {
  id: Id,
  stack: Type.String(),
  state: oneOf(APPLY_STATES, {
    description:
      '`succeeded`; `failed`: nothing was changed; `undone`: it was changed, not all gateways took it, and all is as before; `not_undone`: the undoing has failed again and again, and what was changed is there',
  }),
  plan_hash: Type.String(),
  rollback_of: nullable(Type.String({ format: 'uuid', description: 'The apply that it rolls back' })),
  actor: nullable(Type.Record(Type.String(), Type.Unknown(), { description: 'Who asked for it' })),
  request_id: Type.String(),
  progress: Progress,
  outcome: nullable(
    Type.Object({
      created: Type.Integer(),
      updated: Type.Integer(),
      deleted: Type.Integer(),
      deployed: Type.Integer({ description: 'Endpoints that got a new version' }),
      warnings: Type.Array(Type.String()),
    }),
  ),
  error_code: nullable(Type.String()),
  error: nullable(Type.String({ description: 'Why it has failed, or was undone' })),
  created_at: Timestamp,
  committed_at: nullable(Type.String({ format: 'date-time', description: 'When everything was changed' })),
  finished_at: nullable(Timestamp),
};

export const ApplySummaryView = Type.Object(summary, { title: 'ApplySummary' });

const { id, stack, state, actor } = summary;
const EarlierView = Type.Object({ id, stack, state, actor }, { title: 'EarlierApply' });

export const ApplyView = Type.Object(
  {
    ...summary,
    plan: PlanView,
    earlier: Type.Array(EarlierView, {
      description:
        'Applies that have their turn before this one, which waits for them; those that you may see',
    }),
    error_details: nullable(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'Such as `endpoints`, with the diagnostics of each whose code does not compile',
      }),
    ),
  },
  { title: 'Apply' },
);

export const presentApplySummary = presenter(ApplySummaryView) as (
  apply: ApplySummary,
) => Static<typeof ApplySummaryView>;
type Earlier = Static<typeof ApplyView>['earlier'];
const presentWhole = presenter(ApplyView) as unknown as (
  apply: ShownApply & { readonly earlier: Earlier },
) => Static<typeof ApplyView>;

/** An apply as it is now, with those that it waits for. @throws AppError not_found */
export async function showApply(
  store: Store,
  id: string,
  principal: Pick<Principal, 'permissions' | 'scope'>,
): Promise<Static<typeof ApplyView>> {
  const apply = requireFound(await findShownApply(store, id), 'apply', id);
  const earlier = apply.finished_at ? [] : await earlierApplies(store, id, principal.scope);
  return presentApply(apply, principal, earlier as unknown as Earlier);
}

/** An apply with what of its plan somebody may read: it has objects of several kinds. */
export function presentApply(
  apply: ShownApply,
  { permissions }: Pick<Principal, 'permissions'>,
  earlier: Earlier = [],
): Static<typeof ApplyView> {
  const view = presentWhole({ ...apply, earlier });
  const isReadable = (objects: readonly ObjectTraits[]) =>
    objects.flatMap(readPermissionsOf).every((permission) => permissions.has(permission));
  // The shown plan has the changes in the order of the plan.
  const changes = view.plan.changes.filter((_, at) => {
    const objects = apply.changed[at];
    return objects !== undefined && isReadable(objects);
  });
  return { ...view, plan: { ...view.plan, changes } };
}
