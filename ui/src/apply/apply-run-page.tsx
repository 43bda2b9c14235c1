/** How an apply goes, what came of it, and its rollback. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { useProgressEvents } from '../api/progress.js';
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { whoOf } from '../base/actor.js';
import { type BuildingCrates, CratesProgress } from '../base/building-crates.js';
import { Columns } from '../base/columns.js';
import { Button } from '../base/controls.js';
import type { PageProps } from '../base/lazy.js';
import { Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import { Ago, Badge, count } from '../base/text.js';
import { Texts } from '../base/texts.js';
import { Visible } from '../base/visible.js';
import type { Apply } from '../generated/routes.js';
import { PlanChanges } from './plan-view.js';
import { RollbackDialog } from './rollback-dialog.js';
import { currentStep, STATES } from './states.js';

type Progress = Pick<Apply, 'state' | 'progress' | 'earlier'> & Partial<Pick<FollowedApply, 'crates'>>;

/** An apply, with the crates that its handlers wait for. */
type FollowedApply = Apply & { readonly crates?: readonly BuildingCrates[] };

const SUBJECT = { kind: 'apply', list: '/ui/apply', listName: 'All applies' } as const;

export function ApplyRunPage({ params: { id = '' } }: PageProps) {
  const result = useApply(id);
  const [isGoingBack, setGoingBack] = useState(false);
  const apply = result.data;
  const mayGoBack = apply?.state === 'succeeded' && may('endpoints:write');
  return (
    <Page
      title={apply ? titleOf(apply) : 'Apply'}
      crumbs={<Link href="/ui/apply">Apply</Link>}
      actions={mayGoBack && <Button onClick={() => setGoingBack(true)}>Roll back …</Button>}
    >
      <Loaded result={result} lines={6} subject={SUBJECT}>
        {(loaded) => <Content apply={loaded} />}
      </Loaded>
      {isGoingBack && <RollbackDialog id={id} onClose={() => setGoingBack(false)} />}
    </Page>
  );
}

type Titled = Pick<Apply, 'stack'> & Partial<Pick<Apply, 'rollback_of'>>;
const titleOf = ({ stack, rollback_of = null }: Titled) =>
  rollback_of === null ? `Apply of ${stack}` : `Rollback of ${stack}`;

/** The apply with what its events have told since. */
function useApply(id: string) {
  const result = useQuery('GET /api/applies/{id}', { params: { id } });
  const [progress, setProgress] = useState<Progress>();
  const isUnfinished = result.data?.finished_at === null;
  useProgressEvents<Progress>({
    ...{ path: `/api/applies/${encodeURIComponent(id)}/events`, isUnfinished, refresh: result.refresh },
    onProgress: setProgress,
  });
  if (!result.data || !isUnfinished || !progress) return result;
  const data: FollowedApply = { ...result.data, ...progress };
  return { ...result, data };
}

function Content({ apply }: { readonly apply: FollowedApply }) {
  const { state, outcome, error, error_code, error_details, rollback_of, actor, created_at, plan } = apply;
  const [first] = apply.earlier;
  const [word, tone, meaning] = STATES[state];
  const step = currentStep(apply);
  const endpoints = failuresOf(error_details);
  return (
    <>
      <div class="card pad stack tight">
        <div class="actions" role="status">
          <Badge tone={tone}>{word}</Badge>
          <span>{rollback_of !== null && state === 'succeeded' ? 'It is as it was before.' : meaning}</span>
        </div>
        {step && (
          <>
            <progress value={step.done} max={step.of} aria-label={step.label} />
            <span class="small muted number">
              {step.label}: {count(step.done)} of {count(step.of)}
            </span>
          </>
        )}
        {apply.crates?.map((set, at) => (
          <CratesProgress key={at} crates={set} />
        ))}
        {state === 'waiting' && first && (
          <p>
            The next to end is <Link href={`/ui/applies/${first.id}`}>{titleOf(first)}</Link>, of{' '}
            <Visible text={whoOf(first.actor)} isOneLine />
          </p>
        )}
        {outcome && (
          <p>
            {count(outcome.created)} new, {count(outcome.updated)} changed, {count(outcome.deleted)} deleted
            {outcome.deployed > 0 && `; ${count(outcome.deployed)} of them got new code that serves`}
          </p>
        )}
        <p class="muted">
          <Visible text={whoOf(actor)} isOneLine />, <Ago at={created_at} />
          {rollback_of !== null && (
            <>
              , rolls back <Link href={`/ui/applies/${rollback_of}`}>an earlier apply</Link>
            </>
          )}
        </p>
      </div>
      {error !== null && endpoints.length === 0 && (
        <div class="notice bad">
          <div>
            <Visible text={error} />
            <div class="small muted">{error_code}</div>
          </div>
        </div>
      )}
      {endpoints.map((failure) => (
        <FailedHandler key={failure.endpoint} failure={failure} />
      ))}
      {outcome && outcome.warnings.length > 0 && (
        <Texts tone="warn" title="Warnings" texts={outcome.warnings} />
      )}
      <section class="stack tight" aria-labelledby="plan">
        <h2 id="plan">The plan</h2>
        {plan.changes.length === 0 && <p class="muted">You may not see any of its changes.</p>}
        <PlanChanges plan={plan} />
      </section>
    </>
  );
}

interface Failure {
  readonly endpoint: string;
  readonly error: string;
}

/** Handlers that do not compile, with what the compiler says. */
function failuresOf(details: Apply['error_details']): readonly Failure[] {
  const endpoints = details?.['endpoints'];
  return Array.isArray(endpoints) ? (endpoints as Failure[]) : [];
}

function FailedHandler({ failure: { endpoint, error } }: { readonly failure: Failure }) {
  return (
    <article class="card pad stack tight">
      <h2>
        The code of the <Visible text={endpoint} isOneLine /> does not compile
      </h2>
      <Columns>
        <Visible text={error} />
      </Columns>
      <p class="muted">Mend it in the files, and apply them again.</p>
    </article>
  );
}
