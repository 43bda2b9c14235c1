/** Webhooks that tell when something begins to go wrong, and when it is over. */
import { call } from '../api/client.js';
import { invalidate, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { useAddress } from '../base/address.js';
import { ask } from '../base/ask.js';
import { Button } from '../base/controls.js';
import { useLastSeen } from '../base/last-seen.js';
import { ListTable } from '../base/list-table.js';
import { Empty, Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import { Badge } from '../base/text.js';
import { done } from '../base/toasts.js';
import { Visible } from '../base/visible.js';
import type { Alert } from '../generated/routes.js';
import { AlertDialog } from './alert-dialog.js';
import { AlertEvents } from './alert-events.js';
import { sentenceOf } from './conditions.js';
import { Subject } from './subject.js';

export function AlertsPage() {
  const result = useQuery('GET /api/alerts', may('alerts:read') ? {} : undefined);
  const [params, change] = useAddress();
  const lastSeen = useLastSeen(result.data);
  const [edited, followed] = [lastSeen(params.get('edit')), lastSeen(params.get('events'))];
  const close = () => change({ new: undefined, edit: undefined, events: undefined });
  const add = (
    <Button look="primary" onClick={() => change({ new: 'alert' })}>
      New alert
    </Button>
  );
  return (
    <Page title="Alerts" actions={may('alerts:write') && add}>
      <Loaded result={result} lines={5}>
        {(alerts) =>
          alerts.length > 0 ? (
            <AlertTable alerts={alerts} />
          ) : (
            <Empty title="There are no alerts yet">
              <p>
                An alert sends a signed webhook when something begins to go wrong, and another when it is
                over.
              </p>
              {may('alerts:write') && add}
            </Empty>
          )
        }
      </Loaded>
      {params.has('new') && may('alerts:write') && <AlertDialog onClose={close} />}
      {edited && may('alerts:write') && (
        <AlertDialog alert={edited.one} isDeleted={edited.isDeleted} onClose={close} />
      )}
      {followed && <AlertEvents alert={followed.one} onClose={close} />}
    </Page>
  );
}

function AlertTable({ alerts }: { readonly alerts: readonly Alert[] }) {
  const [, change] = useAddress();
  return (
    <ListTable columns={['When', 'About', 'Tells']} hasActions>
      {alerts.map((alert) => (
        <tr key={alert.id}>
          <th scope="row">
            {sentenceOf(alert)} {!alert.enabled && <Badge tone="idle">disabled</Badge>}
          </th>
          <td data-label="About" class="wrap">
            <Subject scope={alert.scope} />
          </td>
          <td data-label="Tells" class="wrap">
            <code>
              <Visible text={alert.url} isOneLine />
            </code>
          </td>
          <td class="end">
            <div class="actions end">
              <Button isSmall onClick={() => change({ events: alert.id })}>
                Events
              </Button>
              {may('alerts:write') && (
                <>
                  <Button isSmall onClick={() => change({ edit: alert.id })}>
                    Edit
                  </Button>
                  <Button isSmall look="danger" onClick={() => askToDelete(alert)}>
                    Delete
                  </Button>
                </>
              )}
            </div>
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function askToDelete(alert: Alert): void {
  ask({
    title: 'Delete the alert?',
    action: 'Delete the alert',
    isDangerous: true,
    text: `Nobody is notified any more: ${sentenceOf(alert)}. Its events are deleted with it.`,
    async run() {
      await call('DELETE /api/alerts/{id}', { params: { id: alert.id } });
      invalidate('/api/alerts');
      done('The alert is deleted.');
    },
  });
}
