/** The events of an alert, and the outcome of their webhooks. */
import { useQuery } from '../api/query.js';
import { Dialog } from '../base/dialog.js';
import { Loaded } from '../base/notices.js';
import { Ago, Badge, type Tone } from '../base/text.js';
import { Visible } from '../base/visible.js';
import type { Alert, AlertEvent } from '../generated/routes.js';
import { sentenceOf } from './conditions.js';

interface AlertEventsProps {
  readonly alert: Alert;
  readonly onClose: () => void;
}

export function AlertEvents({ alert, onClose }: AlertEventsProps) {
  const result = useQuery('GET /api/alerts/{id}/events', { params: { id: alert.id } });
  return (
    <Dialog title={sentenceOf(alert)} isWide onClose={onClose}>
      <Loaded result={result}>
        {(events) =>
          events.length === 0 ? (
            <p class="muted">It has reported nothing yet.</p>
          ) : (
            <ul class="entries">
              {events.map((event) => (
                <Event key={event.id} event={event} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Dialog>
  );
}

const TONES: Readonly<Record<AlertEvent['deliveries'][number]['state'], Tone>> = {
  queued: 'warn',
  sent: 'ok',
  failed: 'bad',
};
const STATUSES = { firing: 'that it began', resolved: 'that it is over' } as const;

function Event({
  event: { subject, message, began_at, ended_at, deliveries },
}: {
  readonly event: AlertEvent;
}) {
  const name = subject['name'] ?? subject['host'] ?? subject['domain'];
  return (
    <li>
      <div class="stack tight">
        <div>
          {typeof name === 'string' && (
            <strong>
              <Visible text={name} isOneLine />
            </strong>
          )}{' '}
          <Visible text={message} />
        </div>
        <div class="small muted">
          began <Ago at={began_at} />,{' '}
          {ended_at === null ? (
            'ongoing'
          ) : (
            <>
              over <Ago at={ended_at} />
            </>
          )}
        </div>
        {deliveries.map(({ status, state, attempts, last_status, last_error }) => (
          <div key={status} class="small">
            <Badge tone={TONES[state]}>{state}</Badge> {STATUSES[status]}
            {attempts > 1 && `, ${attempts} attempts`}
            {last_status !== null && `, answered with ${last_status}`}
            {last_error !== null && (
              <>
                : <Visible text={last_error} isOneLine />
              </>
            )}
          </div>
        ))}
      </div>
    </li>
  );
}
