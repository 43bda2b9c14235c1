/** All that the log has of an entry. */
import { Link } from 'wouter-preact';
import { Button } from '../../base/controls.js';
import { At, bytes, duration } from '../../base/text.js';
import { Visible } from '../../base/visible.js';
import type { LogEntry } from '../../generated/routes.js';
import { Level, Place, RequestLine, textOf } from './log-line.js';

interface DetailsProps {
  readonly entry: LogEntry;
  readonly onClose: () => void;
}

export function LogEntryDetails({ entry, onClose }: DetailsProps) {
  const { message, kind, fields, request_id: requestId, trace_id: traceId, version } = entry;
  const others = Object.entries(fields ?? {}).filter(([name]) => name !== 'place');
  return (
    <section
      class="card pad stack tight log-details"
      aria-label="Entry"
      onKeyDown={(event) => {
        if (event.key === 'Escape') onClose();
      }}
    >
      <div class="row">
        <Level level={entry.level} />
        <span class="muted small">
          <At at={entry.at} />
        </span>
        <Place entry={entry} />
        <span class="end">
          <Button isSmall look="plain" onClick={onClose}>
            Close
          </Button>
        </span>
      </div>
      {kind === 'request' && <RequestLine entry={entry} />}
      {message !== '' && (
        <pre class="code-block">
          <Visible text={message} />
        </pre>
      )}
      <dl class="facts small">
        {requestId !== null && (
          <>
            <dt>Request</dt>
            <dd class="mono">
              <Link
                href={`/ui/endpoints/${entry.endpoint_id}/logs?request_id=${encodeURIComponent(requestId)}`}
              >
                {requestId}
              </Link>
            </dd>
          </>
        )}
        {traceId !== null && (
          <>
            <dt>Trace</dt>
            <dd class="mono">
              <Link href={`/ui/endpoints/${entry.endpoint_id}/logs?trace_id=${encodeURIComponent(traceId)}`}>
                {traceId}
              </Link>
            </dd>
          </>
        )}
        {version !== null && <Fact name="Version" value={String(version)} />}
        {entry.duration_ms !== null && <Fact name="Took" value={duration(entry.duration_ms)} />}
        {entry.bytes !== null && <Fact name="Response" value={bytes(entry.bytes)} />}
        {entry.route !== null && <Fact name="Route" value={entry.route} />}
        {entry.client_ip !== null && <Fact name="Client" value={entry.client_ip} />}
        {others.map(([name, value]) => (
          <Fact key={name} name={name} value={textOf(value)} />
        ))}
      </dl>
    </section>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <>
      <dt>
        <Visible text={name} isOneLine />
      </dt>
      <dd class="mono">
        <Visible text={value} />
      </dd>
    </>
  );
}
