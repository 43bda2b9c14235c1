/** Files, what they would change, and the button that changes it. */
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import type { ApiError } from '../api/client.js';
import { type PlannedApply, usePlan } from '../api/plan.js';
import { invalidate } from '../api/query.js';
import { ask } from '../base/ask.js';
import { Button, Check, TextField } from '../base/controls.js';
import { useDraft } from '../base/draft.js';
import { Empty, Skeleton } from '../base/notices.js';
import { isAtOneOf, problemAt } from '../base/problems.js';
import { SourceField, type SourceWords } from '../base/source-field.js';
import { count } from '../base/text.js';
import { failed } from '../base/toasts.js';
import { useDebounced } from '../base/use-debounced.js';
import type { Plan } from '../generated/routes.js';
import { countOf, PlanChanges, summaryOf } from './plan-view.js';
import { Refusal } from './refusal.js';
import {
  type ApplyRequest,
  isOutOfDate,
  type Options,
  planApply,
  type Source,
  startApply,
} from './request.js';

/** While one types, nothing is planned. */
const SETTLED_AFTER_MS = 500;
const NO_OPTIONS: Options = { env: '', prune: false, adopt: false };
const ENV = 'query.env';

const WORDS: SourceWords = {
  dropLabel: 'Stack file or ZIP',
  drop: 'Drop an edge.yaml, or a ZIP of its folder with the handlers',
  textLabel: 'edge.yaml',
  hint: 'Files of handlers that it names have to be with it in a ZIP. An export is one to begin with.',
  placeholder: 'stack: shop\ndomains:\n  - host: api.example.com',
  accept: '.yaml,.yml,.zip',
};

export function ApplyForm() {
  const [, navigate] = useLocation();
  const [text, setText, forgetText] = useDraft('apply-text', '');
  const [bundle, setBundle] = useState<File>();
  const [options, setOptions, forgetOptions] = useDraft('apply-options', NO_OPTIONS);
  const [sent, setSent] = useState<number>();
  const change = (part: Partial<Options>) => setOptions({ ...options, ...part });

  const source: Source | undefined = bundle ? { bundle } : text.trim() === '' ? undefined : { text };
  const debounced = useDebounced(
    JSON.stringify({ options, text, bundle: bundle && [bundle.name, bundle.size, bundle.lastModified] }),
    SETTLED_AFTER_MS,
  );
  const request: ApplyRequest | undefined = source && { source, options };
  const plan = usePlan(request && ((signal) => planApply(request, signal)), debounced);
  const { data } = plan;
  const deletes = data ? countOf(data, 'delete') : 0;

  const run = async () => {
    if (!request || !data) return;
    setSent(0);
    try {
      const id = await startApply(request, data.plan_hash, setSent);
      forgetText();
      forgetOptions();
      invalidate('/api/applies');
      navigate(`/ui/applies/${id}`);
    } catch (thrown) {
      // Something has changed since: what is shown is planned anew.
      if (isOutOfDate(thrown)) plan.refresh();
      throw thrown;
    } finally {
      setSent(undefined);
    }
  };
  const changes = data?.changes.length ?? 0;
  return (
    <div class="import">
      <div class="stack">
        <SourceField
          words={WORDS}
          text={text}
          bundle={bundle}
          problem={undefined}
          onText={(next) => {
            setBundle(undefined);
            setText(next);
          }}
          // The text stays for when the ZIP is removed.
          onBundle={setBundle}
        />
        <div class="stack tight">
          <Check
            label="Delete what belongs to the stack and is not in the files"
            hint="(prune)"
            isChecked={options.prune}
            onChange={(prune) => change({ prune })}
          />
          <Check
            label="Take over objects that belong to no stack"
            hint="(adopt)"
            isChecked={options.adopt}
            onChange={(adopt) => change({ adopt })}
          />
        </div>
        {bundle && (
          <TextField
            label="Overlay"
            hint="Merges the file edge.NAME.yaml of the ZIP; leave it empty for none"
            placeholder="staging"
            problem={problemAt(plan.error, ENV)}
            value={options.env}
            onInput={(env) => change({ env })}
          />
        )}
        <div class="actions">
          <Button
            look={deletes > 0 ? 'danger' : 'primary'}
            isDisabled={changes === 0 || plan.isLoading}
            onClick={() => (data && deletes > 0 ? askToDelete(data, run) : run())}
          >
            {changes === 0 || plan.isLoading
              ? 'Apply'
              : `Apply ${changes === 1 ? '1 change' : `${count(changes)} changes`}${deletes > 0 ? ' …' : ''}`}
          </Button>
          {sent !== undefined && sent > 0 && sent < 1 && (
            <progress class="inline" value={sent} max={1} aria-label="Upload" />
          )}
        </div>
      </div>
      <Preview plan={plan} hasSource={source !== undefined} />
    </div>
  );
}

interface PreviewProps {
  readonly plan: PlannedApply<Plan>;
  readonly hasSource: boolean;
}

function Preview({ plan: { data, error, isLoading, refresh }, hasSource }: PreviewProps) {
  return (
    <section class="stack" aria-label="Preview" aria-busy={isLoading}>
      {!hasSource ? (
        <Empty title="Nothing chosen yet">
          <p>
            What would be made, changed and deleted is shown here before anything is. An apply is done
            entirely or not at all, and can be rolled back.
          </p>
        </Empty>
      ) : error ? (
        <Problem error={error} onRetry={refresh} />
      ) : data ? (
        <>
          <h2 aria-live="polite">{summaryOf(data)}</h2>
          <PlanChanges plan={data} />
        </>
      ) : (
        <Skeleton lines={6} />
      )}
    </section>
  );
}

function Problem({ error, onRetry }: { readonly error: ApiError; readonly onRetry: () => void }) {
  if (isAtOneOf(error, [ENV]))
    return (
      <div role="alert">
        <Empty title="It cannot be planned like this">
          <p>What is wrong is said at the overlay.</p>
        </Empty>
      </div>
    );
  return <Refusal error={error} onRetry={onRetry} />;
}

function askToDelete(plan: Plan, run: () => Promise<void>): void {
  const deleted = plan.changes.filter(({ action }) => action === 'delete');
  const what = deleted.length === 1 ? 'one object' : `${count(deleted.length)} objects`;
  ask({
    title: `Apply it, and delete ${what}?`,
    action: `Apply, and delete ${what}`,
    isDangerous: true,
    text: (
      <>
        <ul class="scroll-list">
          {deleted.map(({ kind, name }) => (
            <li key={`${kind} ${name}`}>
              <span class="muted">{kind}</span> {name}
            </li>
          ))}
        </ul>
        <p class="muted">What is deleted comes back when the apply is rolled back.</p>
      </>
    ),
    run: () => run().catch(failed),
  });
}
