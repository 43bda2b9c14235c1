/** What is wrong with an endpoint, and the ways to its cause and out of it. */
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { may } from '../api/session.js';
import { Columns } from '../base/columns.js';
import { Button } from '../base/controls.js';
import { ScrollArea } from '../base/scroll-area.js';
import { Ago, count } from '../base/text.js';
import { Visible } from '../base/visible.js';
import type { Endpoint } from '../generated/routes.js';
import { addressOf } from './address.js';
import { addressOfPlace, codePlaceOf, hasFileOf } from './code-place.js';
import { type CompilerError, compilerErrorOf } from './compiler-text.js';
import { useBuild } from './failed-build.js';
import { rollBack } from './serve.js';

interface TroubleProps {
  readonly endpoint: Endpoint;
  /** The tab that is shown: that of the code says by itself what the compiler says. */
  readonly tab: string | undefined;
}

export function Trouble({ endpoint, tab }: TroubleProps) {
  const { status, last_error, recent_errors, last_failure, running } = endpoint;
  const { failed: failedBuild, isOpen } = useBuild(endpoint);
  const logs = addressOf(endpoint, 'logs');
  if (status === 'error' && (failedBuild || isOpen) && tab === 'code') return null;
  if (failedBuild) {
    const error = failedBuild.diagnostics.find(({ level }) => level === 'error');
    return (
      <div class="notice bad">
        <ErrorText>
          The draft does not compile{error ? ': ' : '.'}
          {error && <Visible text={error.message} />}
          {running && <div class="small muted">What served before continues to serve.</div>}
        </ErrorText>
        <Link href={addressOf(endpoint, 'code')}>See the place</Link>
      </div>
    );
  }
  if (status === 'error' && isOpen)
    return (
      <div class="notice">
        <span>The draft is being compiled again.</span>
      </div>
    );
  const compilerError = status === 'error' ? compilerErrorOf(last_error) : undefined;
  if (compilerError) return <Uncompiled endpoint={endpoint} error={compilerError} tab={tab} />;
  if (status === 'error')
    return (
      <div class="notice bad">
        <ErrorText>
          <Visible text={last_error ?? 'It cannot be run.'} />
        </ErrorText>
        <WaysOut endpoint={endpoint} logs={logs} label="See the logs" />
      </div>
    );
  if (recent_errors === 0 || !last_failure) return null;
  const { message, at, version, place, request_id } = last_failure;
  const isPast = version !== null && !isServing(endpoint, version);
  return (
    <div class={`notice ${isPast ? '' : 'bad'}`}>
      <div>
        <ErrorText>
          <Visible text={message} />
          <Place endpoint={endpoint} place={place} />
        </ErrorText>
        <div class="small muted">
          {version !== null && `Version ${version}, `}
          {isPast && 'which no longer serves, '}
          <Ago at={at} />. {count(recent_errors)} {recent_errors === 1 ? 'request' : 'requests'} of the last
          hour failed.
        </div>
      </div>
      <BindService endpoint={endpoint} said={message} />
      <WaysOut
        endpoint={endpoint}
        logs={`${logs}?${new URLSearchParams({ request_id })}`}
        label="See it in the logs"
        isMended={isPast}
      />
    </div>
  );
}

interface UncompiledProps extends TroubleProps {
  readonly error: CompilerError;
}

/** The draft does not compile, and of its build there is only the text. */
function Uncompiled({ endpoint, error: { message, place }, tab }: UncompiledProps) {
  return (
    <div class="notice bad">
      <div>
        <ErrorText>
          The draft does not compile: <Visible text={message} />
          <Place endpoint={endpoint} place={place ?? null} />
          {endpoint.running && <div class="small muted">What served before continues to serve.</div>}
        </ErrorText>
        <details>
          <summary class="small muted">As in a terminal</summary>
          <Columns>
            <Visible text={endpoint.last_error ?? ''} />
          </Columns>
        </details>
      </div>
      {tab !== 'code' && !place && <Link href={addressOf(endpoint, 'code')}>See the code</Link>}
    </div>
  );
}

/** A long one is scrolled. */
function ErrorText({ children }: { readonly children: ComponentChildren }) {
  return (
    <ScrollArea class="error-text" label="What is wrong">
      {children}
    </ScrollArea>
  );
}

/** Where a panic was, as a link to the code if the draft has that file. */
function Place({ endpoint, place: text }: { readonly endpoint: Endpoint; readonly place: string | null }) {
  const place = codePlaceOf(text ?? '');
  if (!place) return null;
  const at = <Visible text={`at ${text}`} isOneLine />;
  return (
    <> {hasFileOf(endpoint, place) ? <Link href={addressOfPlace(endpoint.id, place)}>{at}</Link> : at}</>
  );
}

function isServing({ running, deployment }: Endpoint, version: number): boolean {
  return running && (deployment?.targets.some((target) => target.version === version) ?? false);
}

/** What the SDK and the gateway say where a handler uses a pool without a service. */
const UNBOUND = /service not bound|no service is bound/i;

/** Leads to where a service is bound, if that is what an error is about. */
export function BindService({ endpoint, said }: { readonly endpoint: Endpoint; readonly said: string }) {
  if (!UNBOUND.test(said)) return null;
  return (
    <Link class="button small" href={`${addressOf(endpoint, 'settings')}?section=services`}>
      Bind a service
    </Link>
  );
}

interface WaysOutProps {
  readonly endpoint: Endpoint;
  readonly logs: string;
  readonly label: string;
  readonly isMended?: boolean;
}

function WaysOut({ endpoint, logs, label, isMended }: WaysOutProps) {
  const canRollBack = !isMended && may('endpoints:deploy') && (endpoint.latest_version ?? 0) > 1;
  return (
    <div class="actions">
      {may('logs:read') && (
        <Link class="button small" href={logs}>
          {label}
        </Link>
      )}
      {canRollBack && (
        <Button isSmall onClick={() => rollBack(endpoint)}>
          Roll back to what served before
        </Button>
      )}
    </div>
  );
}
