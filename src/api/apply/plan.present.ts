/** Plans in answers: with the differences of code, which threads find. */
import type { Static } from '@sinclair/typebox';
import type { Plan } from '../../apply/objects.js';
import { shownPlan } from '../../apply/show-plan.js';
import { ownerOfActor } from '../../model/owner.js';
import type { Principal } from '../access/principal.js';
import type { ApiDependencies } from '../api-dependencies.js';
import type { PlanView } from './apply.schema.js';

export async function shownInFull(
  plan: Plan,
  { threads }: Pick<ApiDependencies, 'threads'>,
  { actor }: Pick<Principal, 'actor'>,
): Promise<Static<typeof PlanView>> {
  const shown = await shownPlan(plan, (before, after, limits) =>
    threads.run(ownerOfActor(actor), 'hunks', { before, after, ...limits }),
  );
  return shown as Static<typeof PlanView>;
}
