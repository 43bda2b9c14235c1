/** The queue dashboard of the gateway, within the page. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { may } from '../api/session.js';
import { Empty } from '../base/notices.js';
import { Page } from '../base/page.js';
import { shownTheme } from '../base/theme.js';
import { showDashboardTheme, storeDashboardTheme } from './dashboard-theme.js';

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
      <Dashboard />
    </Page>
  );
}

/** It starts once it knows its colours. */
function Dashboard() {
  const frame = useRef<HTMLIFrameElement>(null);
  const [isReady, setReady] = useState(false);
  const theme = shownTheme.value;
  useLayoutEffect(() => {
    storeDashboardTheme(theme);
    showDashboardTheme(frame.current, theme);
    setReady(true);
  }, [theme]);
  return (
    <iframe
      ref={frame}
      class="dashboard card"
      {...(isReady && { src: DASHBOARD })}
      title="Queue dashboard"
      onLoad={() => showDashboardTheme(frame.current, theme)}
    />
  );
}
