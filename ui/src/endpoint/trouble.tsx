/** What is wrong with an endpoint, and the ways to its cause and out of it. */
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { may } from '../api/session.js';
import { Button } from '../base/controls.js';
import { ScrollArea } from '../base/scroll-area.js';
import { Ago, count } from '../base/text.js';
import { Visible } from '../base/visible.js';
import type { Endpoint } from '../generated/routes.js';
import { addressOf } from './address.js';
import { useFailedBuild } from './failed-build.js';
import { rollBack } from './serve.js';

export function Trouble({ endpoint }: { readonly endpoint: Endpoint }) {
  const { status, last_error, recent_errors, last_failure, running } = endpoint;
  const failedBuild = useFailedBuild(endpoint);
  const logs = addressOf(endpoint, 'logs');
  if (failedBuild) {
    const error = failedBuild.diagnostics.find(({ level }) => level === 'error');
    return (
      <div class="notice bad">
        <ErrorText>
          The draft does not compile{error ? ': ' : '.'}
          {error && <Visible text={error.message} />}
          {running && <div class="small muted">What served before goes on serving.</div>}
        </ErrorText>
        <Link href={addressOf(endpoint, 'code')}>See the place</Link>
      </div>
    );
  }
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
      <WaysOut
        endpoint={endpoint}
        logs={`${logs}?${new URLSearchParams({ request_id })}`}
        label="See it in the logs"
        isMended={isPast}
      />
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

/** Where a panic was, as a link to the code. */
function Place({ endpoint, place }: { readonly endpoint: Endpoint; readonly place: string | null }) {
  const [, line, column] = /^handler\.rs:(\d+):(\d+)$/.exec(place ?? '') ?? [];
  if (line === undefined || column === undefined) return null;
  return (
    <>
      {' '}
      <Link href={`${addressOf(endpoint, 'code')}?${new URLSearchParams({ line, column })}`}>
        at handler.rs:{line}:{column}
      </Link>
    </>
  );
}

function isServing({ running, deployment }: Endpoint, version: number): boolean {
  return running && (deployment?.targets.some((target) => target.version === version) ?? false);
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
