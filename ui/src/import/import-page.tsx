/** Makes endpoints of a document of OpenAPI, or of a ZIP with one and its handlers. */
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { call } from '../api/client.js';
import { usePlan } from '../api/plan.js';
import { invalidate, useQuery } from '../api/query.js';
import { may, me } from '../api/session.js';
import { Button } from '../base/controls.js';
import { useDraft } from '../base/draft.js';
import { Empty, Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import { problemAt } from '../base/problems.js';
import { SourceField, type SourceWords } from '../base/source-field.js';
import { useDebounced } from '../base/use-debounced.js';
import type { Domain } from '../generated/routes.js';
import { changes, PlanView, SPEC } from './plan-view.js';
import {
  type ImportRequest,
  type Options,
  planImport,
  type Source,
  startImport,
  type Target,
} from './request.js';
import { type TargetChoice, TargetFields } from './target-fields.js';

export function ImportPage() {
  if (!may('imports:write'))
    return (
      <Page title="Import">
        <Empty title="You may not import">
          <p>An admin or an editor can import an API.</p>
        </Empty>
      </Page>
    );
  return <ImportForms />;
}

function ImportForms() {
  const domains = useQuery('GET /api/domains', may('domains:read') ? {} : undefined);
  return (
    <Page title="Import">
      {may('domains:read') ? (
        <Loaded result={domains}>{(loaded) => <ImportForm domains={loaded} />}</Loaded>
      ) : (
        <ImportForm domains={[]} />
      )}
    </Page>
  );
}

/** While one types a document, nothing is previewed. */
const SETTLED_AFTER_MS = 500;

const WORDS: SourceWords = {
  dropLabel: 'Document or ZIP',
  drop: 'Drop an OpenAPI document, or a ZIP with one and its handlers',
  textLabel: 'Document',
  hint: 'OpenAPI 3 or Swagger 2.0, YAML or JSON. Paste it here, if it is in no file.',
  placeholder: 'openapi: 3.1.0\ninfo: …',
  accept: '.yaml,.yml,.json,.zip',
};

function ImportForm({ domains }: { readonly domains: readonly Domain[] }) {
  const [, navigate] = useLocation();
  const [text, setText, forgetText] = useDraft('import-document', '');
  const [bundle, setBundle] = useState<File>();
  const [chosen, setChosen, forgetChosen] = useDraft<TargetChoice>('import-target', firstChoice(domains));
  const [sent, setSent] = useState<number>();

  const source: Source | undefined = bundle ? { bundle } : text.trim() === '' ? undefined : { spec: text };
  const target = targetOf(chosen, domains);
  const options: Options = {
    validate: chosen.validate,
    deploys: chosen.deploys && may('endpoints:deploy'),
  };
  const inputs = JSON.stringify({
    ...{ target, options, text },
    bundle: bundle && [bundle.name, bundle.size, bundle.lastModified],
  });
  const debounced = useDebounced(inputs, SETTLED_AFTER_MS);
  const request: ImportRequest | undefined = source && target && { source, target, options };
  const plan = usePlan(request && ((signal) => planImport(request, signal)), debounced);
  /** What is shown is what would be imported. */
  const isPlanned = debounced === inputs && !plan.isLoading;

  const run = async () => {
    if (!request) return;
    setSent(0);
    try {
      const id = await startImport({ ...request, target: await existing(request.target) }, setSent);
      forgetText();
      forgetChosen();
      invalidate('/api/endpoints', '/api/collections', '/api/domains');
      navigate(`/ui/imports/${id}`);
    } finally {
      setSent(undefined);
    }
  };
  const importCount = plan.data ? changes(plan.data, 'created') + changes(plan.data, 'updated') : 0;
  return (
    <div class="import">
      <div class="stack">
        <SourceField
          words={WORDS}
          text={text}
          bundle={bundle}
          problem={problemAt(plan.error, SPEC)}
          onText={(next) => {
            setBundle(undefined);
            setText(next);
          }}
          // The text stays for when the ZIP is removed.
          onBundle={setBundle}
        />
        <TargetFields
          chosen={chosen}
          domains={domains}
          isBundle={bundle !== undefined}
          onChange={setChosen}
        />
        <div class="actions">
          <Button look="primary" isDisabled={!plan.data || !isPlanned} onClick={run}>
            {importCount > 0 && isPlanned
              ? `Import ${importCount === 1 ? '1 endpoint' : `${importCount} endpoints`}`
              : 'Import'}
          </Button>
          {sent !== undefined && sent > 0 && sent < 1 && (
            <progress class="inline" value={sent} max={1} aria-label="Upload" />
          )}
        </div>
      </div>
      <PlanView plan={plan} hasSource={source !== undefined} />
    </div>
  );
}

function firstChoice(domains: readonly Domain[]): TargetChoice {
  const isLimited = me.value?.domains !== null;
  const only = domains.length === 1 || isLimited ? domains[0]?.host : undefined;
  return { host: only ?? '*', newHost: '', collection: 'title', validate: 'off', deploys: true };
}

/** Undefined: not chosen yet. */
function targetOf(
  { host, newHost, collection }: TargetChoice,
  domains: readonly Domain[],
): Target | undefined {
  const chosen = host === '' ? newHost.trim().toLowerCase() : host;
  if (chosen === '') return undefined;
  const domainId = domains.find((domain) => domain.host === chosen)?.id;
  const isNamed = collection !== 'title' && collection !== 'none';
  return { host: chosen, domainId, collection: isNamed ? { id: collection } : collection };
}

/** Makes the domain where there is none of a host. @throws ApiError */
async function existing(target: Target): Promise<Target> {
  if (target.host === '*' || target.domainId !== undefined || !may('domains:write')) return target;
  const { data } = await call('POST /api/domains', { body: { name: target.host, host: target.host } });
  return { ...target, domainId: data.id };
}
