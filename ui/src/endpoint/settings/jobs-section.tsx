import { useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { Empty, Loaded } from '../../base/notices.js';
import { useInterval } from '../../base/use-interval.js';
import type { Endpoint } from '../../generated/routes.js';
import { Section } from '../../settings/section.js';
import { JobTable } from './job-table.js';

/** Requests that are queued, and schedules, are read again so often. */
export const REFRESH_MS = 3_000;

/** The newest queued requests of an endpoint. */
export function JobsSection({ endpoint: { id } }: { readonly endpoint: Endpoint }) {
  const mayRead = may('jobs:read');
  const result = useQuery('GET /api/endpoints/{id}/jobs', mayRead ? { params: { id } } : undefined);
  // Others queue requests at any time: nothing announces them.
  useInterval(REFRESH_MS, result.refresh);
  if (!mayRead) return <Empty title="You may not see queued requests" />;
  return (
    <Section
      title="Queued requests"
      hint="The newest 100, by the API or by a schedule, and what became of them."
    >
      <Loaded result={result}>
        {(jobs) =>
          jobs.length === 0 ? (
            <Empty title="Nothing was queued">
              <p>
                A queued request is sent to the handler at least once, again when it fails. The tab Try queues
                one; a schedule does so again and again.
              </p>
            </Empty>
          ) : (
            <JobTable jobs={jobs} />
          )
        }
      </Loaded>
    </Section>
  );
}
