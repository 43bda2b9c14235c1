/** The parts of the installation: processes, confinement, services that cannot be reached, builds under way. */
import { Link } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { may, me } from '../api/session.js';
import { Loaded } from '../base/notices.js';
import { Preparing } from '../base/preparation.js';
import { Ago, Badge, type Tone } from '../base/text.js';
import { useInterval } from '../base/use-interval.js';
import { Visible } from '../base/visible.js';

const REFRESH_MS = 10_000;
const MOST_SHOWN = 8;

export function UnreachableServices() {
  const services = useQuery('GET /api/services', {});
  const failing = services.data?.filter(({ state }) => state === 'unreachable' || state === 'failed');
  if (!failing || failing.length === 0) return null;
  return (
    <section class="card" aria-label="Services">
      <header>
        <h2>Services that cannot be reached</h2>
      </header>
      <ul>
        {failing.slice(0, MOST_SHOWN).map(({ id, name, service_type, state_message }) => (
          <li key={id}>
            <Link class="tree-row line" href={`/ui/services/${id}`}>
              <Badge tone="bad">{service_type}</Badge>
              <span class="truncate name-of">
                {name} <span class="muted">{state_message}</span>
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Builds() {
  const running = useQuery('GET /api/builds', { query: { state: 'running', limit: MOST_SHOWN } });
  const queued = useQuery('GET /api/builds', { query: { state: 'queued', limit: MOST_SHOWN } });
  const builds = [...(running.data ?? []), ...(queued.data ?? [])];
  return (
    <section class="card" aria-label="Builds">
      <header>
        <h2>Builds under way</h2>
        <Link href="/ui/builds">All builds</Link>
      </header>
      <Loaded result={running} lines={2}>
        {() =>
          builds.length === 0 ? (
            <p class="pad muted">None.</p>
          ) : (
            <ul>
              {builds.slice(0, MOST_SHOWN).map(({ id, state, created_at, endpoints, of_source }) => (
                <li key={id}>
                  <Link class="tree-row line" href={`/ui/builds/${id}`}>
                    <Badge tone={state === 'running' ? 'warn' : 'idle'}>
                      {state === 'running' ? 'Running' : 'Queued'}
                    </Badge>
                    <span class="truncate name-of">
                      <Visible
                        text={[...endpoints, ...of_source].map(({ name }) => name).join(', ')}
                        isOneLine
                      />
                    </span>
                    <span class="muted">
                      since <Ago at={created_at} />
                    </span>
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

type Level = 'namespaces' | 'landlock' | 'limits';
const LEVELS: Readonly<Record<Level, readonly [string, Tone]>> = {
  namespaces: ['namespaces', 'ok'],
  landlock: ['landlock', 'ok'],
  limits: ['limits only', 'warn'],
};

export function Installation() {
  const health = useQuery('GET /api/health', {});
  useInterval(REFRESH_MS, health.refresh);
  return (
    <section class="card" aria-label="Installation">
      <header>
        <h2>Installation</h2>
        {health.data && <span class="muted small">version {health.data.version}</span>}
      </header>
      <div class="pad stack">
        <Loaded result={health} lines={3}>
          {({ sandbox, preparing, log }) => (
            <>
              <dl class="facts">
                <dt>Handlers are confined by</dt>
                <dd>
                  <Confinement level={sandbox.gateway} none="no gateway runs" />
                </dd>
                <dt>Builds are confined by</dt>
                <dd>
                  <Confinement level={sandbox.worker} none="no worker runs" />
                </dd>
              </dl>
              <Preparing preparing={preparing} />
              {log.leaves_out && (
                <p class="notice warn">
                  The log is full: entries are left out. LOG_RETENTION_MB gives it more room.
                </p>
              )}
            </>
          )}
        </Loaded>
        {may('metrics:read') && me.value?.domains === null && <Nodes />}
      </div>
    </section>
  );
}

function Confinement({ level, none }: { readonly level: Level | null; readonly none: string }) {
  if (level === null) return <Badge tone="bad">{none}</Badge>;
  const [word, tone] = LEVELS[level];
  return <Badge tone={tone}>{word}</Badge>;
}

function Nodes() {
  const result = useQuery('GET /api/nodes', {});
  useInterval(REFRESH_MS, result.refresh);
  return (
    <Loaded result={result} lines={2}>
      {({ nodes, queues, warnings }) => {
        // Code that does not compile is nothing that is wrong with the installation: the builds have it.
        const isOfAuthors = (queue: string, state: string) => queue === 'compile' && state === 'failed';
        const waiting = (queues ?? []).filter(
          ({ queue, state, jobs }) => state !== 'completed' && jobs > 0 && !isOfAuthors(queue, state),
        );
        return (
          <>
            {warnings.map((warning) => (
              <p key={warning} class="notice warn">
                {warning}
              </p>
            ))}
            <div class="scroll-x">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Process</th>
                    <th scope="col">Machine</th>
                    <th scope="col">Since</th>
                  </tr>
                </thead>
                <tbody>
                  {nodes.map(({ id, kind, hostname, started_at }) => (
                    <tr key={id}>
                      <td>{kind}</td>
                      <td>{hostname}</td>
                      <td>
                        <Ago at={started_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            {queues === null && <p class="bad-text">The queues cannot be read.</p>}
            {waiting.length > 0 && (
              <p class="small muted">
                Jobs: {waiting.map(({ queue, state, jobs }) => `${jobs} ${state} in ${queue}`).join(', ')}
              </p>
            )}
          </>
        );
      }}
    </Loaded>
  );
}
