/** Endpoints that do not serve because of an error, or have answered with some: the worst first. */
import { Link } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { EndpointState } from '../base/endpoint-state.js';
import { Loaded } from '../base/notices.js';
import { count, Method } from '../base/text.js';
import { useInterval } from '../base/use-interval.js';

const REFRESH_MS = 10_000;
const MOST_SHOWN = 8;

export function FailingEndpoints() {
  const failing = useQuery('GET /api/overview/endpoints', { query: { failing: true, limit: MOST_SHOWN } });
  useInterval(REFRESH_MS, failing.refresh);
  return (
    <section class="card failing" aria-label="Endpoints with errors">
      <header>
        <h2>Endpoints with errors</h2>
        {failing.hasMore && <Link href="/ui/endpoints?failing=true">All of them</Link>}
      </header>
      <Loaded result={failing} lines={3}>
        {(endpoints) =>
          endpoints.length === 0 ? (
            <p class="pad muted">None in the last hour.</p>
          ) : (
            <ul>
              {endpoints.map((endpoint) => (
                <li key={endpoint.id}>
                  <Link class="tree-row line" href={`/ui/endpoints/${endpoint.id}/logs?level=error`}>
                    <Method name={endpoint.method} />
                    <code class="truncate path" title={`${endpoint.domain}${endpoint.route}`}>
                      {endpoint.route}
                    </code>
                    {endpoint.domain !== '*' && (
                      <span class="truncate host small muted">{endpoint.domain}</span>
                    )}
                    {endpoint.errors > 0 && (
                      <span class="small number bad-text">
                        {count(endpoint.errors)} of {count(endpoint.serving_requests)}
                      </span>
                    )}
                    <EndpointState {...endpoint} />
                  </Link>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  );
}
