/** Applies as they are shown, with what says who may read each of their changes. */
import type { InstallationObject } from '../apply/objects.js';
import { type Apply, type ApplySummary, inFirst, SUMMARY } from './applies.js';
import type { Store } from './database.js';

/** What of an object says who may read it. */
export interface ObjectTraits {
  readonly kind: InstallationObject['kind'];
  readonly has_variables: boolean;
  readonly has_schedules: boolean;
}

/** An apply as it is shown. */
export type ShownApply = ApplySummary &
  Pick<Apply, 'plan' | 'error_details'> & {
    /** For each change, in their order: the objects before and after it that there are. */
    readonly changed: readonly (readonly ObjectTraits[])[];
  };

type PlanWithChanges = Readonly<Record<string, unknown>> & { readonly changes: readonly unknown[] };

/** The database reads what it changes, and the plan comes in parts. */
export async function findShownApply(store: Store, id: string): Promise<ShownApply | undefined> {
  const { rows } = await store.knex.raw<{
    rows: (Omit<ShownApply, 'plan' | 'changed'> & {
      plan: PlanWithChanges;
      shown: unknown;
      traits: ObjectTraits[] | null;
    })[];
  }>(
    `SELECT ${inFirst([...SUMMARY, 'error_details'])}, CASE WHEN coalesce(at, 1) = 1 THEN plan - 'changes' END AS plan,
            shown, CASE WHEN at IS NOT NULL THEN (
              SELECT coalesce(jsonb_agg(jsonb_build_object(
                       'kind', object -> 'kind',
                       'has_variables', coalesce(object -> 'variables', '{}') <> '{}',
                       'has_schedules', coalesce(object -> 'schedules', '[]') <> '[]')), '[]')
                FROM (VALUES (change -> 'before'), (change -> 'after')) AS objects (object)
               WHERE jsonb_typeof(object) = 'object') END AS traits
       FROM applies LEFT JOIN LATERAL
            ROWS FROM (jsonb_array_elements(plan -> 'changes'), jsonb_array_elements(applies.changes))
            WITH ORDINALITY AS elements (shown, change, at) ON true
      WHERE id = ? ORDER BY at`,
    [id],
  );
  const [first] = rows;
  if (!first) return undefined;
  const { shown: _, traits: __, ...found } = first;
  const changes = rows.flatMap(({ shown }) => (shown === null ? [] : [shown]));
  return {
    ...found,
    plan: { ...found.plan, changes },
    changed: rows.flatMap(({ traits }) => (traits === null ? [] : [traits])),
  };
}
