/** `edge validate`, `diff`, `apply`, `applies` and `rollback --apply`. The server plans; this shows and confirms. */
import { targetOfGateway } from '../cargo.js';
import { type CompiledSource, diagnosticsAbout, textAbout } from '../deploying.js';
import { CliError, type CompilerMessage, EXIT } from '../errors.js';
import { type FolderFiles, filesOf, sentSource } from '../folder.js';
import { followToEnd } from '../following.js';
import type { Apply, Plan } from '../generated/routes.js';
import { routeName } from '../names.js';
import { showPlan, summaryOf } from '../plan.js';
import { type BuildingCrates, buildingCrates } from '../preparing.js';
import { readProject } from '../project.js';
import { confirm } from '../prompt.js';
import { type CommonOptions, type Session, withInterruptHint } from '../session.js';
import { safeLine, timeOf } from '../text.js';
import { actorOf } from './variables.js';

interface FolderOptions extends CommonOptions {
  readonly env?: string;
}

interface ChangeOptions extends FolderOptions {
  readonly prune?: boolean;
  readonly adopt?: boolean;
}

const LISTED = 20;
const ASYNC = { prefer: 'respond-async' } as const;

export async function validate(session: Session, options: FolderOptions, folder = '.'): Promise<void> {
  // Whose objects are is no question of the files.
  const plan = await planOf(session, folder, { ...options, adopt: true });
  session.out.result({ valid: true, changes: plan.changes.length, warnings: plan.warnings }, () =>
    session.out.line(`The files are valid. ${summaryOf(plan)}`),
  );
}

export async function diff(
  session: Session,
  options: ChangeOptions & { readonly exitCode?: boolean },
  folder = '.',
): Promise<void> {
  const plan = await planOf(session, folder, options);
  session.out.result(plan, () => {
    showPlan(session.out, plan);
    session.out.line(summaryOf(plan));
  });
  if (options.exitCode && plan.changes.length > 0) process.exitCode = EXIT.usage;
}

export async function apply(
  session: Session,
  options: ChangeOptions & { readonly yes?: boolean; readonly wait: boolean },
  folder = '.',
): Promise<void> {
  // Sent twice as it is now: what is saved meanwhile is not applied.
  const sent = await filesOf(folder, options.env, targetOfGateway(session));
  const plan = await planOfFiles(session, sent, options);
  if (!(await isConfirmed(session, plan, options.yes))) return;
  const query = { ...queryOf(options), ...startOf(plan, options) };
  const { data } = await session.api.call('POST /api/apply', {
    query,
    body: { files: sent.files } as never,
    headers: ASYNC,
  });
  await finish(session, data as Apply, sent);
}

/** Rolls back what an apply has changed. */
export async function rollbackApply(
  session: Session,
  id: string,
  options: { readonly yes?: boolean; readonly wait: boolean },
): Promise<void> {
  const params = { id };
  const route = 'POST /api/applies/{id}/rollback';
  const { data, warnings } = await session.api.call(route, { params, query: { dry_run: 'true' } });
  const plan = data as Plan;
  session.out.warnings([...warnings, ...plan.warnings]);
  const nothing = 'Nothing to change: all is as it was before this apply.';
  if (!(await isConfirmed(session, plan, options.yes, nothing))) return;
  const query = startOf(plan, options);
  const started = await session.api.call(route, { params, query, headers: ASYNC });
  await finish(session, started.data as Apply);
}

export async function applies(
  session: Session,
  { all }: CommonOptions & { readonly all?: boolean },
): Promise<void> {
  const list = all
    ? await session.api.all('GET /api/applies')
    : await session.api.get('GET /api/applies', { query: { limit: LISTED } });
  session.out.result(list, () => {
    if (list.length === 0) session.out.note('There are none yet; `edge apply` makes the first.');
    else
      session.out.table(
        ['id', 'stack', 'state', 'when', 'by', 'rolls back'],
        list.map((one) => [
          ...[one.id, one.stack, one.state, timeOf(one.created_at)],
          ...[actorOf(one.actor), one.rollback_of ?? ''],
        ]),
      );
  });
}

async function planOf(session: Session, folder: string, options: ChangeOptions): Promise<Plan> {
  return planOfFiles(session, await filesOf(folder, options.env, targetOfGateway(session)), options);
}

async function planOfFiles(session: Session, { files }: FolderFiles, options: ChangeOptions): Promise<Plan> {
  session.out.progress('Planning');
  const query = { ...queryOf(options), dry_run: 'true' as const };
  const { data, warnings } = await session.api.call('POST /api/apply', { query, body: { files } as never });
  const plan = data as Plan;
  session.out.warnings([...warnings, ...plan.warnings]);
  return plan;
}

function startOf({ plan_hash }: Plan, { wait }: { readonly wait: boolean }) {
  return { plan_hash, ...(!wait && { no_wait: 'true' as const }) };
}

function queryOf({ env, prune, adopt }: ChangeOptions) {
  return {
    ...(env !== undefined && { env }),
    ...(prune && { prune: 'true' as const }),
    ...(adopt && { adopt: 'true' as const }),
  };
}

/** Shows a plan, and asks. @returns false when there is nothing to do */
async function isConfirmed(
  session: Session,
  plan: Plan,
  isSure: boolean | undefined,
  nothing = summaryOf(plan),
): Promise<boolean> {
  const { out } = session;
  if (plan.changes.length === 0) {
    out.result({ state: 'unchanged', stack: plan.stack }, () => out.line(nothing));
    return false;
  }
  if (!out.json) showPlan(out, plan);
  await confirm(session, `${summaryOf(plan)} Apply?`, isSure);
  return true;
}

/** Follows an apply to its end. @throws CliError with its error */
async function finish(session: Session, started: Apply, sent?: FolderFiles): Promise<void> {
  const interruptHint = `The apply continues at the gateway, all or nothing; \`edge applies\` shows its outcome (${started.id}).`;
  const following = follow(session, started, interruptHint);
  const ended = await withInterruptHint(session, interruptHint, following, { areTold: true });
  session.out.warnings(ended.outcome?.warnings ?? []);
  if (ended.state !== 'succeeded') throw failed(ended, sent ? await sourcesOf(sent, ended) : new Map());
  session.out.result(ended, () =>
    session.out.line(`Applied. \`edge rollback --apply ${ended.id}\` rolls it back.`),
  );
}

function follow(session: Session, { id }: Apply, interruptHint: string): Promise<Apply> {
  const { api, out } = session;
  const params = { id };
  return followToEnd(
    session,
    {
      look: async () => {
        const now = await api.get('GET /api/applies/{id}', { params });
        return now.finished_at === null ? undefined : now;
      },
      events: (last) => api.events('GET /api/applies/{id}/events', { params }, last),
      show: ({ name, data }) => {
        const text = name === 'progress' ? progressOf(data as Progress) : undefined;
        if (text !== undefined) out.progress(text);
      },
    },
    interruptHint,
  );
}

/** What each state does, and the step that is counted in it. */
const STEPS: Partial<Record<Apply['state'], readonly [doing: string, step?: string]>> = {
  queued: ['Waiting for a worker'],
  compiling: ['Compiling', 'compiled'],
  preparing: ['Starting handlers', 'prepared'],
  committing: ['Writing'],
  converging: ['Waiting for all gateways', 'converged'],
  undoing: ['Undoing'],
};

type Progress = Pick<Apply, 'state' | 'progress'> &
  Partial<Pick<Apply, 'earlier'>> & { readonly crates?: readonly BuildingCrates[] };

function progressOf({ state, progress, earlier = [], crates = [] }: Progress): string | undefined {
  if (state === 'waiting') return waitingFor(progress['earlier'], earlier);
  const [doing, step] = STEPS[state] ?? [];
  const counted = step === undefined ? undefined : progress[step];
  const text = counted && counted.of > 0 ? `${doing}: ${counted.done} of ${counted.of}` : doing;
  return crates.length > 0 ? [text, ...crates.map(buildingCrates)].join('; ') : text;
}

/** Others may be before it that one may not see. */
function waitingFor(counted: Progress['progress'][string] | undefined, [first]: Apply['earlier']): string {
  const left = counted ? counted.of - counted.done : 0;
  const who =
    first && ` and ${actorOf(first.actor) || 'somebody'} applies ${safeLine(first.stack)} (${first.id})`;
  return `Waiting for its turn: ${left} before it${who ?? ''}`;
}

/** What is there after an apply that has changed something, and did not succeed. */
const HOW_IT_ENDED: Partial<Record<Apply['state'], string>> = {
  undone: 'All is as before, but for what its warnings name.',
  not_undone: 'Its changes remain.',
};

/** Handlers that do not compile, in the details of an apply. */
interface Uncompiled {
  readonly endpoint: string;
  readonly diagnostics?: readonly CompilerMessage[];
}

function uncompiledOf({ error_details }: Apply): readonly Uncompiled[] {
  return (error_details?.['endpoints'] ?? []) as readonly Uncompiled[];
}

/** Sources by the names of their endpoints. */
type Sources = ReadonlyMap<string, CompiledSource>;

/** The sources that do not compile, as far as edge.yaml alone says them. */
async function sourcesOf({ folder, files }: FolderFiles, ended: Apply): Promise<Sources> {
  // What is wrong for `edge deploy` may be right here: the server has read the files.
  const project = await readProject(folder).catch(() => undefined);
  const endpoints = new Map(project?.endpoints.map((one) => [`endpoint "${routeName(one)}"`, one]));
  const sources = new Map<string, CompiledSource>();
  for (const { endpoint: name } of uncompiledOf(ended)) {
    const endpoint = endpoints.get(name);
    if (endpoint) sources.set(name, await sentSource(endpoint, files));
  }
  return sources;
}

function failed(ended: Apply, sources: Sources): CliError {
  const { id, state, error, error_code, error_details, request_id } = ended;
  const how = HOW_IT_ENDED[state] ?? 'Nothing was changed.';
  const uncompiled = uncompiledOf(ended);
  const diagnostics = uncompiled.flatMap(({ endpoint, diagnostics: own = [] }) => {
    const source = sources.get(endpoint);
    return source ? diagnosticsAbout(own, source) : own;
  });
  const first = sources.get(uncompiled[0]?.endpoint ?? '');
  const message = error ?? 'The apply has failed.';
  return new CliError(first ? textAbout(message, first) : message, {
    code: error_code ?? 'apply_failed',
    hint: how,
    requestId: request_id,
    details: { ...error_details, apply_id: id, state },
    ...(diagnostics.length > 0 && { diagnostics }),
  });
}
