/** How an import goes, and what has come of it. */
import { Link } from 'wouter-preact';
import { may } from '../api/session.js';
import { CratesProgress } from '../base/building-crates.js';
import { STATES } from '../base/endpoint-state.js';
import { FirstOf } from '../base/first-of.js';
import type { PageProps } from '../base/lazy.js';
import { ListTable } from '../base/list-table.js';
import { Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import { Ago, Badge, count, Method, type Tone } from '../base/text.js';
import { Texts } from '../base/texts.js';
import { Visible } from '../base/visible.js';
import type { Import } from '../generated/routes.js';
import { FailedHandlers, Handlers } from './handlers.js';
import { type FollowedImport, useImport } from './use-progress.js';

const TONES: Readonly<Record<Import['state'], Tone>> = {
  queued: 'idle',
  running: 'warn',
  succeeded: 'ok',
  failed: 'bad',
};

const SUBJECT = { kind: 'import', list: '/ui/import', listName: 'Import' } as const;

export function ImportRunPage({ params: { id = '' } }: PageProps) {
  const result = useImport(id);
  return (
    <Page
      title={result.data ? `Import of ${result.data.title}` : 'Import'}
      crumbs={may('imports:write') && <Link href="/ui/import">Import</Link>}
      actions={result.data?.result && <TryLink endpoints={result.data.result.endpoints} />}
    >
      <Loaded result={result} lines={6} subject={SUBJECT}>
        {(imported) => <Content imported={imported} />}
      </Loaded>
    </Page>
  );
}

type ImportedEndpoints = NonNullable<Import['result']>['endpoints'];

/** Leads to an endpoint that answers, if there is one; without parameters in its path first. */
function TryLink({ endpoints }: { readonly endpoints: ImportedEndpoints }) {
  const weight = ({ status, method, path }: ImportedEndpoints[number]) =>
    (status === 'running' ? 4 : 0) + (method === 'GET' ? 2 : 0) + (path.includes('{') ? 0 : 1);
  const [first] = [...endpoints].sort((a, b) => weight(b) - weight(a));
  if (!first || !may('endpoints:read')) return null;
  return (
    <Link class="button primary" href={`/ui/endpoints/${first.id}/try`}>
      Try {first.method} <Visible text={first.path} isOneLine />
    </Link>
  );
}

function Content({ imported }: { readonly imported: FollowedImport }) {
  const { crates, state, handlers, counts, warnings, errors, result, created_at } = imported;
  const unmatched = errors.filter(({ stage }) => stage === 'match');
  const isOver = imported.finished_at !== null;
  const finished = isOver
    ? handlers.length
    : counts.failed + (imported.start ? counts.started : counts.compiled + counts.started);
  return (
    <>
      <div class="card pad stack tight">
        <div class="actions" role="status">
          <Badge tone={TONES[state]}>{state}</Badge>
          <span class="muted">
            <Ago at={created_at} />
            {result?.collection && (
              <>
                {' '}
                into the collection “<Visible text={result.collection.name} isOneLine />”
              </>
            )}
          </span>
          {result && (
            <span>
              {count(result.endpoints_created)} new, {count(result.endpoints_updated)} were there before
            </span>
          )}
        </div>
        {handlers.length > 0 && !isOver && (
          <>
            <progress value={finished} max={handlers.length} aria-label="Handlers that are done" />
            <span class="small muted number">
              {count(finished)} of {count(handlers.length)} handlers are done
              {counts.failed > 0 && `, ${count(counts.failed)} have failed`}
            </span>
          </>
        )}
        {crates.map((set, at) => (
          <CratesProgress key={at} crates={set} />
        ))}
      </div>
      {unmatched.length > 0 && (
        <Texts
          tone="bad"
          title="Handlers that do not match"
          texts={unmatched.map(({ name, handler, message }) => `${handler ?? name ?? 'The ZIP'}: ${message}`)}
        />
      )}
      <FailedHandlers handlers={handlers} />
      {warnings.length > 0 && <Texts tone="warn" title="Warnings" texts={warnings} />}
      {!isOver && <Handlers handlers={handlers} />}
      {result && <Endpoints endpoints={result.endpoints} />}
    </>
  );
}

function Endpoints({ endpoints }: { readonly endpoints: ImportedEndpoints }) {
  return (
    <FirstOf all={endpoints}>
      {(shown) => (
        <ListTable columns={['Endpoint', 'State', 'Code']} hasActions>
          {shown.map(({ id, name, method, path, status, handler }) => (
            <tr key={id}>
              <th scope="row">
                <Method name={method} />{' '}
                <Link href={`/ui/endpoints/${id}`}>
                  <Visible text={path} isOneLine />
                </Link>
                {name !== `${method} ${path}` && (
                  <div class="of-method muted small">
                    <Visible text={name} isOneLine />
                  </div>
                )}
              </th>
              <td data-label="State">
                <Badge tone={STATES[status][1]}>{STATES[status][0]}</Badge>
              </td>
              <td data-label="Code" class="wrap">
                {handler === null ? 'generated, or your own' : <Visible text={handler} isOneLine />}
              </td>
              <td class="end">
                <Link
                  class="button small"
                  href={`/ui/endpoints/${id}/try`}
                  aria-label={`Try ${method} ${path}`}
                >
                  Try
                </Link>
              </td>
            </tr>
          ))}
        </ListTable>
      )}
    </FirstOf>
  );
}
