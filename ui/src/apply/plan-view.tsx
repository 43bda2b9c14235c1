/** What an apply would make, change and delete, or has. */
import { FirstOf } from '../base/first-of.js';
import { Badge, count, type Tone } from '../base/text.js';
import { Texts } from '../base/texts.js';
import { Visible } from '../base/visible.js';
import type { Plan } from '../generated/routes.js';
import { FieldChanges } from './field-changes.js';

type Change = Plan['changes'][number];
type Action = Change['action'];

const WORDS: Readonly<Record<Action, readonly [string, Tone]>> = {
  create: ['new', 'ok'],
  update: ['changed', 'warn'],
  delete: ['deleted', 'bad'],
};

/** How many objects a plan makes, changes or deletes. */
export const countOf = ({ changes }: Plan, action: Action): number =>
  changes.filter((change) => change.action === action).length;

/** The plan in a line. */
export function summaryOf(plan: Plan): string {
  if (plan.changes.length === 0) return 'Nothing would change';
  return (['create', 'update', 'delete'] as const)
    .map((action) => `${count(countOf(plan, action))} ${WORDS[action][0]}`)
    .join(', ');
}

export function PlanChanges({ plan }: { readonly plan: Plan }) {
  return (
    <>
      {plan.warnings.length > 0 && <Texts tone="warn" title="Warnings" texts={plan.warnings} />}
      {plan.changes.length > 0 && (
        <FirstOf all={plan.changes}>
          {(shown) => (
            <ul class="card details-list">
              {shown.map((change) => (
                <li key={`${change.kind} ${change.name}`}>
                  <OneChange change={change} />
                </li>
              ))}
            </ul>
          )}
        </FirstOf>
      )}
    </>
  );
}

function OneChange({ change: { action, kind, name, fields } }: { readonly change: Change }) {
  const [word, tone] = WORDS[action];
  const title = (
    <>
      <Badge tone={tone}>{word}</Badge>
      <span class="what">
        <span class="muted">{kind}</span> <Visible text={name} isOneLine />
      </span>
    </>
  );
  if (fields.length === 0) return <div class="summary">{title}</div>;
  return (
    <details>
      <summary>
        {title}
        {action === 'update' && (
          <span class="muted small truncate">{fields.map(({ path }) => path).join(', ')}</span>
        )}
      </summary>
      <FieldChanges action={action} fields={fields} />
    </details>
  );
}
