/** What an import would make, change and leave out. */
import type { PlannedApply } from '../api/plan.js';
import { FirstOf } from '../base/first-of.js';
import { ListTable } from '../base/list-table.js';
import { Empty, ErrorNotice, Skeleton } from '../base/notices.js';
import { isAtOneOf } from '../base/problems.js';
import { Badge, count, Method, type Tone } from '../base/text.js';
import { Texts } from '../base/texts.js';
import { Visible } from '../base/visible.js';
import type { ImportPlan } from '../generated/routes.js';

const TONES: Readonly<Record<ImportPlan['endpoints'][number]['change'], Tone>> = {
  created: 'ok',
  updated: 'warn',
  unchanged: 'idle',
};
const WORDS = { created: 'new', updated: 'changed', unchanged: 'as it is' };
const CODE = { handler: 'from the ZIP', generated: 'generated', kept: 'your own, kept' };
/** The place of the document in what the API says. */
export const SPEC = 'body.spec';

export function PlanView({
  plan,
  hasSource,
}: {
  readonly plan: PlannedApply<ImportPlan>;
  readonly hasSource: boolean;
}) {
  const { data, error, isLoading, refresh, warnings } = plan;
  return (
    <section class="stack" aria-label="Preview" aria-busy={isLoading}>
      {!hasSource ? (
        <Empty title="Nothing chosen yet">
          <p>
            What would be made, changed and left out is shown here before anything is stored. Importing a
            document again updates its endpoints, and keeps code that you wrote.
          </p>
        </Empty>
      ) : isAtOneOf(error, [SPEC]) ? (
        <div role="alert">
          <Empty title="It cannot be imported like this">
            <p>What is wrong is said at the document.</p>
          </Empty>
        </div>
      ) : error ? (
        <ErrorNotice error={error} onRetry={refresh} />
      ) : data ? (
        <Plan plan={data} warnings={warnings} />
      ) : (
        <Skeleton lines={6} />
      )}
    </section>
  );
}

function Plan({ plan, warnings }: { readonly plan: ImportPlan; readonly warnings: readonly string[] }) {
  const { collection, endpoints, left_out: leftOut, errors } = plan;
  const others = warnings.filter((warning) => !leftOut.includes(warning));
  return (
    <>
      <div class="stack tight">
        <h2 aria-live="polite">
          {count(changes(plan, 'created'))} new, {count(changes(plan, 'updated'))} changed,{' '}
          {count(changes(plan, 'unchanged'))} as they are
          {leftOut.length > 0 && `, ${count(leftOut.length)} left out`}
        </h2>
        {collection && (
          <p class="muted">
            {collection.id === null ? 'In a new collection' : 'In the collection'} “
            <Visible text={collection.name} isOneLine />”
            {collection.base_path !== null && (
              <>
                {' '}
                below <code>{collection.base_path}</code>
              </>
            )}
          </p>
        )}
      </div>
      {errors.length > 0 && (
        <Texts
          tone="bad"
          title="Cannot be done"
          texts={errors.map(({ name, message }) => `${name ?? 'The ZIP'}: ${message}`)}
        />
      )}
      {leftOut.length > 0 && <Texts tone="warn" title="Left out" texts={leftOut} />}
      {others.length > 0 && <Texts tone="warn" title="Warnings" texts={others} />}
      <Endpoints endpoints={endpoints} />
    </>
  );
}

/** How many endpoints an import would make, change or leave as they are. */
export function changes(
  { endpoints }: ImportPlan,
  change: ImportPlan['endpoints'][number]['change'],
): number {
  return endpoints.filter((endpoint) => endpoint.change === change).length;
}

function Endpoints({ endpoints }: { readonly endpoints: ImportPlan['endpoints'] }) {
  if (endpoints.length === 0) return null;
  return (
    <FirstOf all={endpoints}>
      {(shown) => (
        <ListTable columns={['Endpoint', 'Would be', 'Code']}>
          {shown.map(({ name, method, path, change, code, handler }) => (
            <tr key={`${method} ${path}`}>
              <th scope="row">
                <Method name={method} /> <Visible text={path} isOneLine />
                {name !== `${method} ${path}` && (
                  <div class="of-method muted small">
                    <Visible text={name} isOneLine />
                  </div>
                )}
              </th>
              <td data-label="Would be">
                <Badge tone={TONES[change]}>{WORDS[change]}</Badge>
              </td>
              <td data-label="Code" class="wrap">
                {handler === null ? CODE[code] : <Visible text={handler} isOneLine />}
              </td>
            </tr>
          ))}
        </ListTable>
      )}
    </FirstOf>
  );
}
