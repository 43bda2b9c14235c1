/** The queue dashboard of the gateway, within the page. */
import { may } from '../api/session.js';
import { Empty } from '../base/notices.js';
import { Page } from '../base/page.js';

const DASHBOARD = '/queues';

export function QueuesPage() {
  if (!may('queues:write'))
    return (
      <Page title="Queues">
        <Empty title="You may not see the queues">
          <p>Only admins who are not limited to certain hosts see them.</p>
        </Empty>
      </Page>
    );
  return (
    <Page
      title="Queues"
      actions={
        <a class="button" href={DASHBOARD} target="_blank" rel="noopener">
          Open in a window of its own
        </a>
      }
    >
      <p class="muted">
        Jobs that wait, go on and have failed. Removing all jobs of a queue asks in a window of its own.
      </p>
      <iframe class="dashboard card" src={DASHBOARD} title="Queue dashboard" />
    </Page>
  );
}
