/** `edge status`: what runs. */
import type { Health } from '../generated/routes.js';
import { type CommonOptions, isCode, type Session } from '../session.js';
import { safeLine, timeOf } from '../text.js';

/** Parts for which the user lacks the permission are left out. */
function unlessForbidden(thrown: unknown): null {
  if (isCode(thrown, 'forbidden')) return null;
  throw thrown;
}

export async function status(session: Session, _options: CommonOptions): Promise<void> {
  const { api, out } = session;
  const builds = (state: 'queued' | 'running') =>
    api.get('GET /api/builds', { query: { state, limit: 1000 } }).catch(unlessForbidden);
  const [health, statistics, nodes, queued, running] = await Promise.all([
    api.get('GET /api/health'),
    api.get('GET /api/stats').catch(unlessForbidden),
    api.get('GET /api/nodes').catch(unlessForbidden),
    builds('queued'),
    builds('running'),
  ]);
  const counted = queued && running && { queued: queued.length, running: running.length };
  const { url } = session.access;
  out.result(
    { url, health, statistics, ...(nodes ?? { nodes: null, queues: null }), builds: counted },
    () => {
      const { version, sandbox, rustc, preparing, log, key_rotation } = health;
      out.list([
        ['gateway', `${url}, version ${version}`],
        [
          'sandbox',
          `handlers: ${sandbox.gateway ?? 'no gateway'}, compilers: ${sandbox.worker ?? 'no worker'}`,
        ],
        ...rustc.map(
          (one) => ['compiler', safeLine(`${one.version}${one.host ? `, ${one.host}` : ''}`)] as const,
        ),
        ...(statistics
          ? ([
              ['endpoints', `${statistics.endpoints_running} of ${statistics.endpoints_total} run`],
              ['requests', String(statistics.requests_handled)],
            ] as const)
          : []),
        ...(counted ? ([['builds', `${counted.running} run, ${counted.queued} wait`]] as const) : []),
        ...(preparing.length > 0 ? ([['preparing', preparing.map(preparationOf).join(', ')]] as const) : []),
        ...(log.leaves_out ? ([['log', 'so much is logged that entries are left out']] as const) : []),
        ...(key_rotation ? ([['key rotation', `${key_rotation.left ?? '?'} values left`]] as const) : []),
      ]);
      if (!nodes) {
        out.note('Nodes and queues need the permission metrics:read.');
        return;
      }
      out.line('');
      if (nodes.nodes.length === 0) out.line('No process is registered.');
      else
        out.table(
          ['node', 'machine', 'pid', 'sandbox', 'since'],
          nodes.nodes.map((one) => [
            one.kind,
            one.hostname,
            String(one.pid),
            one.sandbox ?? '',
            timeOf(one.started_at),
          ]),
        );
      out.line('');
      const waiting = nodes.queues?.filter(({ jobs }) => jobs > 0);
      if (!waiting) out.line('The queue cannot be reached.');
      else if (waiting.length === 0) out.line('The queues are empty.');
      else
        out.line(
          safeLine(
            `Queues: ${waiting.map(({ queue, state, jobs }) => `${queue} ${jobs} ${state}`).join(', ')}`,
          ),
        );
    },
  );
}

function preparationOf({ what, crates, of, seconds, problem }: Health['preparing'][number]): string {
  const built = `${what}: ${crates}${of === null ? '' : ` of ${of}`} crates in ${Math.round(seconds)} s`;
  return problem === null ? built : `${built}, ${problem}`;
}
