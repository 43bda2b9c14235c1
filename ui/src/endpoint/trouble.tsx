/** What is wrong with an endpoint, and the ways to its cause and out of it. */
import { Link } from 'wouter-preact';
import { may } from '../api/session.js';
import { Ago, count } from '../base/text.js';
import type { Endpoint } from '../generated/routes.js';

export function Trouble({ endpoint }: { readonly endpoint: Endpoint }) {
  const { id, status, last_error, recent_errors, last_failure } = endpoint;
  const logs = `/ui/endpoints/${id}/logs`;
  if (status === 'error')
    return (
      <div class="notice bad" role="alert">
        <div class="error-text">{last_error ?? 'It cannot be run.'}</div>
        {may('logs:read') && <Link href={logs}>See the logs</Link>}
      </div>
    );
  if (recent_errors === 0 || !last_failure) return null;
  const { message, at, version, request_id } = last_failure;
  return (
    <div class="notice bad">
      <div>
        <div class="error-text">{message}</div>
        <div class="small muted">
          {version !== null && `Version ${version}, `}
          <Ago at={at} />; {count(recent_errors)} {recent_errors === 1 ? 'request' : 'requests'} of the last
          hour failed
        </div>
      </div>
      {may('logs:read') && (
        <Link href={`${logs}?${new URLSearchParams({ request_id })}`}>See this request in the logs</Link>
      )}
    </div>
  );
}
