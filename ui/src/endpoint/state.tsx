/** How an endpoint is: what serves, and whether that fails, in the words that lists have. */
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { ASLEEP, FailingState, STATES } from '../base/endpoint-state.js';
import { Badge } from '../base/text.js';
import { useInterval } from '../base/use-interval.js';
import type { Endpoint, Series } from '../generated/routes.js';

interface StateProps {
  readonly endpoint: Endpoint;
}

export function State({ endpoint }: StateProps) {
  const { status, running } = endpoint;
  if (running)
    return (
      <>
        <Badge tone="ok">{servingOf(endpoint)}</Badge>
        <Failures endpoint={endpoint} />
      </>
    );
  if (status === 'running') return <Badge tone="warn">Starting</Badge>;
  const [word, tone] = STATES[status];
  return <Badge tone={tone}>{word}</Badge>;
}

function servingOf({ running_version, deployment }: Endpoint): string {
  if (running_version === null) return ASLEEP;
  const [first, second] = deployment?.targets ?? [];
  if (first && second) return `Versions ${first.version} and ${second.version} serve`;
  return `Version ${running_version} serves`;
}

const REFRESH_MS = 10_000;

/** Said of what serves now, not of what served before it within the last hour. */
function Failures({ endpoint: { id, recent_errors, last_failure, deployment } }: StateProps) {
  const targets = deployment?.targets ?? [];
  const [first, second] = targets;
  const version = second ? undefined : first?.version;
  const mayRead = may('statistics:read');
  const query = { endpoint_id: id, ...(version !== undefined && { version }) };
  const series = useQuery('GET /api/series', mayRead ? { query } : undefined);
  useInterval(REFRESH_MS, () => {
    if (mayRead) series.refresh();
  });
  if (targets.some(({ state }) => state === 'failed')) return <FailingState errors={1} requests={1} />;
  if (mayRead) {
    const total = totalOf(series.data);
    return total.errors > 0 ? <FailingState {...total} /> : null;
  }
  // How many requests there were is not known here.
  const hasErrors = recent_errors > 0 && targets.some((target) => target.version === last_failure?.version);
  return hasErrors ? <FailingState errors={1} requests={Number.POSITIVE_INFINITY} /> : null;
}

function totalOf(series: Series | undefined): { readonly errors: number; readonly requests: number } {
  const total = { errors: 0, requests: 0 };
  for (const { errors, requests } of series?.points ?? []) {
    total.errors += errors;
    total.requests += requests;
  }
  return total;
}
