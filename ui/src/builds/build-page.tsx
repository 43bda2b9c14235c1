/** One build: what the compiler said, and how long it took. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { call, type Diagnostic } from '../api/client.js';
import { invalidate, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { CratesProgress } from '../base/building-crates.js';
import { Columns } from '../base/columns.js';
import { Button } from '../base/controls.js';
import type { PageProps } from '../base/lazy.js';
import { Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import { Ago, At, Badge, duration } from '../base/text.js';
import { done, failed } from '../base/toasts.js';
import { Visible } from '../base/visible.js';
import { addressOfPlace } from '../endpoint/code-place.js';
import type { Build } from '../generated/routes.js';
import { BuildState, BuiltEndpoints, endpointsOf, tookOf } from './parts.js';

const SUBJECT = { kind: 'build', list: '/ui/builds', listName: 'All builds' } as const;

export function BuildPage({ params: { id = '' } }: PageProps) {
  const result = useQuery('GET /api/builds/{id}', { params: { id } });
  const [endpoint] = result.data ? endpointsOf(result.data) : [];
  const isUnfinished = result.data?.state === 'queued' || result.data?.state === 'running';
  return (
    <Page
      title={`Build ${id.slice(0, 8)}`}
      crumbs={<Link href="/ui/builds">Builds</Link>}
      actions={
        <>
          {isUnfinished && may('endpoints:deploy') && <Cancel id={id} />}
          {endpoint && result.data?.state === 'failed' && (
            <Link class="button primary" href={`/ui/endpoints/${endpoint.id}/code`}>
              {may('endpoints:write') ? 'Mend the code' : 'See the code'}
            </Link>
          )}
        </>
      }
    >
      <Loaded result={result} lines={6} subject={SUBJECT}>
        {(build) => <Content build={build} />}
      </Loaded>
    </Page>
  );
}

function Cancel({ id }: { readonly id: string }) {
  const [isBusy, setBusy] = useState(false);
  const cancel = async () => {
    setBusy(true);
    try {
      await call('POST /api/builds/{id}/cancel', { params: { id } });
      done('The build is cancelled');
    } catch (thrown) {
      failed(thrown);
    }
    setBusy(false);
    invalidate('/api/builds');
  };
  return (
    <Button isDisabled={isBusy} onClick={cancel}>
      Cancel
    </Button>
  );
}

function Content({ build }: { readonly build: Build }) {
  const { state, error, error_code, diagnostics, attempt, request_id, artifact } = build;
  return (
    <>
      <div class="card pad">
        <dl class="facts">
          <dt>State</dt>
          <dd>
            <BuildState state={state} /> {error_code !== null && <span class="muted">{error_code}</span>}
            {attempt > 1 && <span class="muted"> attempt {attempt}: a worker was lost meanwhile</span>}
          </dd>
          <dt>Endpoints</dt>
          <dd>
            <BuiltEndpoints build={build} />
          </dd>
          <dt>Requested</dt>
          <dd>
            <At at={build.created_at} /> (<Ago at={build.created_at} />)
          </dd>
          {build.crates !== null && (
            <>
              <dt>Waits for</dt>
              <dd>
                <CratesProgress crates={build.crates} />
              </dd>
            </>
          )}
          <Timings build={build} />
          {artifact !== null && (
            <>
              <dt>Executable</dt>
              <dd>
                <code>{artifact}</code>
              </dd>
            </>
          )}
          <dt>Request</dt>
          <dd>
            <code>{request_id}</code>
            {may('audit:read') && (
              <>
                {' · '}
                <Link href={`/ui/access/audit?request_id=${encodeURIComponent(request_id)}`}>
                  Who asked for it?
                </Link>
              </>
            )}
          </dd>
        </dl>
      </div>
      {diagnostics.length > 0 && (
        <Diagnostics diagnostics={diagnostics} endpointId={endpointsOf(build)[0]?.id} />
      )}
      {error !== null && (
        <section class="stack tight" aria-labelledby="output">
          <h2 id="output">{diagnostics.length > 0 ? 'Output of the compiler' : 'Why it failed'}</h2>
          <Columns>{error}</Columns>
        </section>
      )}
    </>
  );
}

/** Parts of a build in their order; what was not needed is left out. */
const PARTS = [
  ['dependencies_ms', 'Crates'],
  ['compile_ms', 'Compiling'],
  ['store_ms', 'Storing'],
] as const;

function Timings({ build }: { readonly build: Build }) {
  const { created_at, started_at, timings } = build;
  const parts = PARTS.flatMap(([name, label]) => {
    const ms = timings[name];
    return ms === undefined ? [] : [[label, ms] as const];
  });
  const waited = started_at === null ? 0 : new Date(started_at).getTime() - new Date(created_at).getTime();
  const took = tookOf(build);
  return (
    <>
      {waited > 0 && !build.cached && (
        <>
          <dt>Waited</dt>
          <dd class="number">{duration(waited)}</dd>
        </>
      )}
      {took !== '' && (
        <>
          <dt>Took</dt>
          <dd class="number">
            {took}
            {parts.length > 0 && (
              <span class="muted">
                {' '}
                ({parts.map(([label, ms]) => `${label} ${duration(ms)}`).join(', ')})
              </span>
            )}
          </dd>
        </>
      )}
    </>
  );
}

interface DiagnosticsProps {
  readonly diagnostics: readonly Diagnostic[];
  readonly endpointId: string | undefined;
}

function Diagnostics({ diagnostics, endpointId }: DiagnosticsProps) {
  return (
    <section class="stack tight" aria-labelledby="diagnostics">
      <h2 id="diagnostics">What the compiler says</h2>
      <ul class="card details-list">
        {diagnostics.map(({ level, code, message, file, line, column }, at) => (
          <li key={at} class="diagnostic">
            <Badge tone={level === 'error' ? 'bad' : 'warn'}>
              {code === null ? level : `${level} ${code}`}
            </Badge>
            <span class="what">{message}</span>
            {line !== null && (
              <span class="small number">
                <DiagnosticPlace
                  endpointId={endpointId}
                  file={file ?? undefined}
                  line={line}
                  column={column}
                />
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

interface DiagnosticPlaceProps {
  readonly endpointId: string | undefined;
  /** Undefined in builds of earlier versions: the code. */
  readonly file: string | undefined;
  readonly line: number;
  readonly column: number | null;
}

function DiagnosticPlace({ endpointId, file, line, column }: DiagnosticPlaceProps) {
  const text = `line ${line}${column === null ? '' : `:${column}`}${file === undefined ? '' : ` of ${file}`}`;
  if (endpointId === undefined) return <Visible text={text} isOneLine />;
  const place = { file, line: String(line), column: column === null ? undefined : String(column) };
  return (
    <Link href={addressOfPlace(endpointId, place)}>
      <Visible text={text} isOneLine />
    </Link>
  );
}
