/** `edge update`: crates get newer versions, as far as their requirements allow. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CliError } from '../errors.js';
import type { VersionDiff } from '../generated/routes.js';
import { endpointId, routeName } from '../names.js';
import { findProject, type Project, type ProjectEndpoint } from '../project.js';
import { type CommonOptions, type Session, withInterruptHint } from '../session.js';
import { safeLine } from '../text.js';

const LOCK = 'Cargo.lock';
const CONTINUES = 'It continues at the gateway; `edge versions` shows the version that it makes.';

type Crates = VersionDiff['crates'];

/** What was updated: a lock of the project, or an endpoint. */
interface Updated {
  readonly name: string;
  readonly lock?: string;
  /** The version that it has now, and whether that is a new one. */
  readonly version?: number;
  readonly crates?: Crates;
}

export async function update(
  session: Session,
  { endpoint }: CommonOptions & { readonly endpoint?: string },
  crate?: string,
): Promise<void> {
  const project = endpoint === undefined ? await findProject('.') : undefined;
  const updated: Updated[] = [];
  const folders = new Set<string>();
  for (const one of project?.endpoints ?? []) {
    const folder = project && lockFolderOf(project, one);
    if (folder === undefined) updated.push(await updateAt(session, routeName(one), crate));
    else if (!folders.has(folder)) {
      folders.add(folder);
      updated.push(await updateLock(session, folder, crate));
    }
  }
  if ((project?.endpoints ?? []).length === 0) updated.push(await updateAt(session, endpoint, crate));
  session.out.result(updated, () => {
    for (const one of updated) for (const line of linesOf(one)) session.out.line(safeLine(line));
  });
}

/** The folder of the Cargo.lock that holds for a handler: that of edge.yaml, or the nearest one above its file. */
function lockFolderOf({ folder: root }: Project, { handler, lock }: ProjectEndpoint): string | undefined {
  if (lock !== null) return basename(lock) === LOCK ? dirname(lock) : undefined;
  for (let folder = dirname(handler); ; folder = dirname(folder)) {
    if (existsSync(join(folder, LOCK))) return folder;
    if (folder === root || dirname(folder) === folder) return undefined;
  }
}

/** What a project says is changed where it says it: by cargo. */
async function updateLock(session: Session, folder: string, crate: string | undefined): Promise<Updated> {
  const lock = join(folder, LOCK);
  const args = ['update', ...(crate === undefined ? [] : ['-p', crate])];
  const command = `cargo ${args.join(' ')}`;
  session.out.note(`Running \`${command}\` in ${folder}, where the crates are locked.`);
  const child = spawn('cargo', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = (await once(child, 'exit').catch((thrown: unknown) => {
    throw new CliError(
      `${lock} says what the crates are, and changing it needs cargo, which cannot be started: ${(thrown as Error).message}`,
      { code: 'no_cargo', hint: 'Install it with rustup (https://rustup.rs), and put it on the PATH.' },
    );
  })) as [number | null];
  if (code !== 0) throw new CliError(`\`${command}\` has failed in ${folder}`, { code: 'cargo_failed' });
  return { name: lock, lock };
}

/** Without a lock of the author, the gateway has the crates of the newest version: it makes another one. */
async function updateAt(
  session: Session,
  name: string | undefined,
  crate: string | undefined,
): Promise<Updated> {
  const id = await endpointId(session, name);
  const params = { id };
  const newest = async () =>
    (await session.api.get('GET /api/endpoints/{id}/versions', { params, query: { limit: 1 } }))[0]?.version;
  const before = await newest();
  session.out.progress(`${name ?? id}: resolving crates and compiling`);
  const body = { update: crate === undefined ? true : [crate] };
  const call = session.api.call('POST /api/endpoints/{id}/compile', { params, body });
  const { warnings } = await withInterruptHint(session, CONTINUES, call);
  session.out.warnings(warnings);
  const version = await newest();
  const isNew = before !== undefined && version !== undefined && version !== before;
  const crates = isNew ? await changedCrates(session, id, before, version) : [];
  return { name: name ?? id, ...(version !== undefined && { version }), crates };
}

async function changedCrates(session: Session, id: string, from: number, to: number): Promise<Crates> {
  const { crates } = await session.api.get('GET /api/endpoints/{id}/versions/{version}/diff', {
    params: { id, version: String(from) },
    query: { to: String(to) },
  });
  return crates;
}

function linesOf({ name, lock, version, crates = [] }: Updated): string[] {
  if (lock !== undefined) return [`${lock} is updated; \`edge deploy\` has it serve.`];
  if (crates.length === 0) return [`${name}: version ${version} has the newest crates.`];
  return [
    `${name}: version ${version} has other crates; \`edge deploy\` has it serve.`,
    ...crates.map(({ name: crate, from, to }) => `  ${crate} ${from ?? 'none'} -> ${to ?? 'none'}`),
  ];
}
