/** How the gateway does, at one look. */
import { Link } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { Page } from '../base/page.js';
import { FailingEndpoints } from './failing.js';
import { Figures } from './figures.js';
import { FirstAdmin } from './first-admin.js';
import { FirstEndpoint, isShowingFirstEndpoint } from './first-endpoint.js';
import { Builds, Installation, UnreachableServices } from './installation.js';
import { LiveExample } from './live-example.js';

export function OverviewPage() {
  const canRead = may('endpoints:read');
  const stats = useQuery('GET /api/stats', may('statistics:read') ? {} : undefined);
  const isEmpty = stats.data?.endpoints_total === 0;
  return (
    <Page
      title="Overview"
      actions={
        stats.data &&
        !isEmpty && (
          <Link href="/ui/endpoints" class="muted">
            {stats.data.endpoints_running} of {stats.data.endpoints_total} endpoints run
          </Link>
        )
      }
    >
      <FirstAdmin />
      {(isEmpty || isShowingFirstEndpoint()) && may('endpoints:write') && <FirstEndpoint />}
      {canRead && !isEmpty && !isShowingFirstEndpoint() && <LiveExample />}
      {may('statistics:read') && !isEmpty && <Figures />}
      <div class="overview-columns">
        <div class="stack">
          {canRead && !isEmpty && <FailingEndpoints />}
          {may('builds:read') && <Builds />}
        </div>
        <div class="stack">
          {may('services:read') && <UnreachableServices />}
          <Installation />
        </div>
      </div>
    </Page>
  );
}
