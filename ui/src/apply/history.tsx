/** What was applied, the newest first. */
import { Link } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { whoOf } from '../base/actor.js';
import { ListTable } from '../base/list-table.js';
import { MoreButton } from '../base/lists.js';
import { Empty, Loaded } from '../base/notices.js';
import { Ago, Badge, count } from '../base/text.js';
import { Visible } from '../base/visible.js';
import type { ApplySummary } from '../generated/routes.js';
import { STATES } from './states.js';

const LISTED = 50;

export function History() {
  const result = useQuery('GET /api/applies', { query: { limit: LISTED } });
  return (
    <section class="stack tight" aria-labelledby="history">
      <h2 id="history">What was applied</h2>
      <Loaded result={result} lines={4}>
        {(applies) =>
          applies.length > 0 ? (
            <>
              <ListTable columns={['Stack', 'State', 'Changes', 'By', 'When']}>
                {applies.map((apply) => (
                  <Row key={apply.id} apply={apply} />
                ))}
              </ListTable>
              <MoreButton result={result} />
            </>
          ) : (
            <Empty title="Nothing was applied yet">
              <p>An apply makes the installation what a folder of files says, entirely or not at all.</p>
            </Empty>
          )
        }
      </Loaded>
    </section>
  );
}

function Row({
  apply: { id, stack, state, outcome, rollback_of, actor, created_at },
}: {
  readonly apply: ApplySummary;
}) {
  const [word, tone] = STATES[state];
  return (
    <tr>
      <th scope="row">
        <Link href={`/ui/applies/${id}`}>
          <Visible text={stack} isOneLine />
        </Link>{' '}
        {rollback_of !== null && <span class="muted small">a rollback</span>}
      </th>
      <td data-label="State">
        <Badge tone={tone}>{word}</Badge>
      </td>
      <td data-label="Changes">
        {outcome ? (
          `${count(outcome.created)} new, ${count(outcome.updated)} changed, ${count(outcome.deleted)} deleted`
        ) : (
          <span class="muted">none</span>
        )}
      </td>
      <td data-label="By" class="wrap">
        <Visible text={whoOf(actor)} isOneLine />
      </td>
      <td data-label="When">
        <Ago at={created_at} />
      </td>
    </tr>
  );
}
