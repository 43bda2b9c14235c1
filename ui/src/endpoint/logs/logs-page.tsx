/** The log of all endpoints. */
import { Page } from '../../base/page.js';
import { LogsTab } from './logs-tab.js';

export function LogsPage() {
  return (
    <Page title="Logs">
      <LogsTab />
    </Page>
  );
}
