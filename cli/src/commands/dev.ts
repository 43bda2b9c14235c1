/** `edge dev`: every save goes live on a host of one's own, with errors and logs underneath. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { targetOfGateway } from '../cargo.js';
import { deployHandler } from '../deploying.js';
import { userName } from '../environment.js';
import { CliError, InterruptError } from '../errors.js';
import { type LocalGateway, startLocalGateway } from '../local-gateway.js';
import { followLogs, showEntry } from '../log-entries.js';
import { routeName } from '../names.js';
import { type Project, type ProjectEndpoint, readProject, requireProject } from '../project.js';
import { type CommonOptions, isCode, type Session } from '../session.js';
import { SourceReads } from '../source-reads.js';
import { findSource, type Source } from '../sources.js';
import { ensureDomain, ensurePlace } from '../targets.js';
import { safeLine } from '../text.js';
import { FolderWatchers } from '../watching.js';

interface DevOptions extends CommonOptions {
  readonly domain?: string;
  /** False with `--no-logs`. */
  readonly logs?: boolean;
}

/** Editors save in several steps. */
const SETTLED_MS = 30;

export async function dev(session: Session, options: DevOptions, folder = '.'): Promise<void> {
  const host = options.domain ?? `${label(userName())}-dev.localhost`;
  const project = await requireProject(folder);
  const local = await localGateway(session);
  try {
    await develop(session, project, host, options.logs !== false);
  } finally {
    await local?.stop();
  }
}

async function develop(session: Session, project: Project, host: string, hasLogs: boolean): Promise<void> {
  const publicUrl = await publicUrlOf(session, host).catch(explained);
  if (await ensureDomain(session, project, host)) session.out.note(`Made the domain ${host}.`);
  const work = new DevWork(session, project, host, publicUrl);
  try {
    await work.deployChanged();
    session.out.note(`Watching ${project.folder}; Ctrl-C ends it, and ${host} keeps what it serves.`);
    const logs = hasLogs ? showLogs(session, host) : undefined;
    await Promise.all([work.watchUntilEnd(), logs]);
  } finally {
    work.close();
  }
}

/** Where no gateway is configured, one is started, if there is a checkout to start it from. */
async function localGateway(session: Session): Promise<LocalGateway | undefined> {
  try {
    void session.access;
    return undefined;
  } catch (thrown) {
    const local = isCode(thrown, 'no_context') ? await startLocalGateway(session) : undefined;
    if (!local) return explained(thrown);
    session.use({ url: local.url });
    return local;
  }
}

/** Without a gateway, what to type. */
function explained(thrown: unknown): never {
  if (!(thrown instanceof CliError) || !['no_context', 'unreachable'].includes(thrown.facts.code ?? ''))
    throw thrown;
  const hint =
    'In a checkout of Edge Gateway, `npm run up` starts one; then: edge login http://127.0.0.1:8081';
  throw new CliError(thrown.message, { ...thrown.facts, hint });
}

/** Deploys what has changed, one deployment after the other. */
class DevWork {
  readonly #session: Session;
  readonly #host: string;
  readonly #publicUrl: string;
  #project: Project;
  /** What was deployed, by method and route. */
  readonly #deployed = new Map<string, string>();
  readonly #ids = new Map<string, string>();
  readonly #watchers = new FolderWatchers(() => this.#changed());
  /** Called with a change; those before the first work are found by it. */
  #changed: () => void = () => undefined;

  constructor(session: Session, project: Project, host: string, publicUrl: string) {
    this.#session = session;
    this.#project = project;
    this.#host = host;
    this.#publicUrl = publicUrl;
  }

  /** Deploys the endpoints whose files or crates are not those of the last deployment. */
  async deployChanged(): Promise<void> {
    const sources = await this.#findSources();
    for (const [endpoint, source] of sources) {
      if (this.#session.signal.aborted) throw new InterruptError();
      // The host of one's own has no collections: the route is the whole one. Of the stack is only what edge.yaml has.
      const stack = endpoint.host === this.#host ? endpoint.stack : null;
      const own = { ...endpoint, host: this.#host, collection: undefined, stack };
      try {
        if (source instanceof CliError) throw source;
        const whole = JSON.stringify(source);
        if (this.#deployed.get(routeName(own)) === whole) continue;
        this.#deployed.set(routeName(own), whole);
        await this.#deploy(own, source);
      } catch (thrown) {
        if (thrown instanceof InterruptError || !(thrown instanceof CliError)) throw thrown;
        // What is deployed goes on; the next save is the next try. Equal code would not compile then, either.
        if (!isCode(thrown, 'compile_failed')) this.#forget(routeName(own));
        this.#session.out.failure(thrown);
      }
    }
  }

  /** What is saved after it was read is deployed next: its folder was watched before. */
  async #findSources(): Promise<ReadonlyMap<ProjectEndpoint, Source | CliError>> {
    const { folder, file, endpoints } = this.#project;
    for (;;) {
      const sources = new Map<ProjectEndpoint, Source | CliError>();
      const watched = new Set([folder]);
      const reads = new SourceReads(targetOfGateway(this.#session));
      for (const endpoint of endpoints) {
        const { source, folders } = await findSource(endpoint, file, reads);
        sources.set(endpoint, source);
        for (const one of folders) watched.add(one);
        // Files are read without a pause: logs, and Ctrl-C, come between.
        await nextTurn();
      }
      if (!this.#watchers.only(watched)) return sources;
    }
  }

  /** It may have been deleted, or nothing could be reached. */
  #forget(name: string): void {
    this.#deployed.delete(name);
    this.#ids.delete(name);
  }

  async #deploy(endpoint: ProjectEndpoint, source: Source): Promise<void> {
    const { out } = this.#session;
    const name = routeName(endpoint);
    const began = performance.now();
    const id = this.#ids.get(name) ?? (await ensurePlace(this.#session, this.#project, endpoint)).id;
    this.#ids.set(name, id);
    out.progress(`${name}: compiling ${endpoint.shown}`);
    const { version } = await deployHandler(this.#session, endpoint, source, id, {});
    const ms = Math.round(performance.now() - began);
    const url = `${this.#publicUrl}${endpoint.route}`;
    const event = { event: 'deployed', endpoint: name, id, version, ms, url };
    out.item(event, () =>
      out.line(
        `${out.paint('green', 'live')} ${safeLine(`${endpoint.method} ${url}`)} (version ${version}, ${ms} ms)`,
      ),
    );
  }

  /** Deploys with every change, until the user ends it. */
  watchUntilEnd(): Promise<never> {
    const { signal } = this.#session;
    return new Promise((_, reject) => {
      let timer: NodeJS.Timeout | undefined;
      let isBusy = false;
      let isDue = false;
      const end = (thrown: unknown) => {
        clearTimeout(timer);
        reject(thrown);
      };
      const work = () => {
        if (isBusy) {
          isDue = true;
          return;
        }
        isBusy = true;
        this.#refresh()
          .then(() => {
            isBusy = false;
            if (isDue) {
              isDue = false;
              work();
            }
          })
          .catch(end);
      };
      const settle = () => {
        clearTimeout(timer);
        timer = setTimeout(work, SETTLED_MS);
      };
      signal.addEventListener('abort', () => end(new InterruptError()));
      if (signal.aborted) return end(new InterruptError());
      this.#changed = settle;
      // What was saved before.
      return settle();
    });
  }

  async #refresh(): Promise<void> {
    this.#watchers.add([this.#project.folder]);
    try {
      this.#project = await readProject(this.#project.folder);
    } catch (thrown) {
      if (!(thrown instanceof CliError)) throw thrown;
      this.#session.out.failure(thrown);
      return;
    }
    await this.deployChanged();
  }

  close(): void {
    this.#watchers.close();
  }
}

async function showLogs(session: Session, host: string): Promise<void> {
  for await (const entry of followLogs(session, { domain: host, limit: 1, since: new Date().toISOString() }))
    session.out.item({ event: 'log', entry }, () => showEntry(session.out, entry));
}

/** Where endpoints of a host answer: this machine's gateway, or the one behind the address of the API. */
async function publicUrlOf(session: Session, host: string): Promise<string> {
  const { gateway } = await session.api.get('GET /api/');
  const isTls = new URL(session.access.url).protocol === 'https:';
  const shown = host === '*' ? new URL(session.access.url).hostname : host;
  return isTls ? `https://${shown}` : `http://${shown}:${gateway.port}`;
}

/** A label of a host name. */
function label(name: string): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return plain === '' ? 'me' : plain.slice(0, 50);
}
