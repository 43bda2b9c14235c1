/** What became of the one request that is shown. */
import { Link } from 'wouter-preact';
import { duration } from '../../base/text.js';
import { Visible } from '../../base/visible.js';
import type { LogFeed } from './feed.js';

interface RequestSummaryProps {
  readonly feed: LogFeed;
  readonly requestId: string;
}

export function RequestSummary({ feed, requestId }: RequestSummaryProps) {
  const rows = feed.revision.value >= 0 ? feed.rows : [];
  const request = rows.find(({ entry }) => entry?.kind === 'request')?.entry;
  return (
    <section class="card pad stack tight" aria-label="Request">
      <h2>
        Request <code>{requestId}</code>
      </h2>
      {request && (
        <p>
          {request.method} <Visible text={request.path ?? ''} isOneLine /> was answered with{' '}
          <strong>{request.status}</strong>
          {request.duration_ms !== null && ` after ${duration(request.duration_ms)}`}
          {request.version !== null && ` by version ${request.version}`}
          {request.client_ip !== null && `, for ${request.client_ip}`}.
        </p>
      )}
      <p class="small muted">
        Below, in order: what the handler said, calls of services that failed or were slow, and the answer.
        Lines of println have no request and are not among them; those of info, warn and error are.{' '}
        {request?.trace_id != null && (
          <Link
            href={`${feed.endpointId === undefined ? '/ui' : `/ui/endpoints/${feed.endpointId}`}/logs?trace_id=${request.trace_id}`}
          >
            All requests of its trace
          </Link>
        )}
      </p>
    </section>
  );
}
