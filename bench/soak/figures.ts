/** Resource usage of a stack at one moment: memory, file descriptors and processes by kind, files, rows, jobs. */
import { readdirSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { withClient } from '../../test/support/postgres.js';
import { descendantsOf } from '../../test/support/process-state.js';
import { heldAfterCollection } from './heaps.js';
import type { Landscape } from './landscape.js';

/** All processes of one kind together. */
export interface ProcessFigures {
  readonly processes: number;
  /** Proportional set size, bytes: shared pages are divided among processes. */
  readonly pss: number;
  /**
   * Anonymous pages, bytes: what they have allocated. Unlike the proportional set size it does not change when other
   * programs that share the same files start or end.
   */
  readonly anonymous: number;
  readonly fds: number;
}

export interface Figures {
  readonly byKind: Readonly<Record<ProcessKind, ProcessFigures>>;
  /** Below DATA_DIR, by its folders, and temporary files as `temp`. */
  readonly files: Readonly<Record<string, number>>;
  /** Of every table. */
  readonly rows: Readonly<Record<string, number>>;
  /** Jobs that are not finished. */
  readonly jobs: number;
}

export const PROCESS_KINDS = ['web', 'worker', 'gateway', 'front', 'handler', 'actor-host'] as const;
export type ProcessKind = (typeof PROCESS_KINDS)[number];

/** Measures everything. */
export async function takeFigures(landscape: Landscape): Promise<Figures> {
  return {
    byKind: processFigures(landscape),
    files: await countFiles(landscape),
    rows: await countRows(landscape.stack.databaseUrl),
    jobs: await unfinishedJobs(landscape),
  };
}

/** Bytes that objects of JavaScript hold after a collection, in all processes of a kind; 0 where none are of Node. */
export type HeldMemory = Readonly<Record<ProcessKind, number>>;

/** Collects the garbage of all processes, one after the other, and measures what is left. */
export async function heldMemory(landscape: Pick<Landscape, 'stack'>): Promise<HeldMemory> {
  const held = Object.fromEntries(PROCESS_KINDS.map((kind) => [kind, 0])) as Record<ProcessKind, number>;
  for (const [kind, pid] of processesOf(landscape)) held[kind] += (await heldAfterCollection(pid)) ?? 0;
  return held;
}

/** Memory, file descriptors and number of the processes of a stack. */
export function processFigures(landscape: Pick<Landscape, 'stack'>): Figures['byKind'] {
  const byKind = Object.fromEntries(
    PROCESS_KINDS.map((kind) => [kind, { processes: 0, pss: 0, anonymous: 0, fds: 0 }]),
  ) as Record<ProcessKind, { processes: number; pss: number; anonymous: number; fds: number }>;
  const add = (kind: ProcessKind, pid: number) => {
    const rollup = read(`/proc/${pid}/smaps_rollup`);
    const kilobytes = (name: string) => new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(rollup)?.[1];
    const [pss, anonymous] = [kilobytes('Pss'), kilobytes('Anonymous')];
    if (pss === undefined) return; // it has just ended
    const figures = byKind[kind];
    figures.processes++;
    figures.pss += Number(pss) * 1024;
    figures.anonymous += Number(anonymous) * 1024;
    figures.fds += entries(`/proc/${pid}/fd`);
  };
  for (const [kind, pid] of processesOf(landscape)) add(kind, pid);
  return byKind;
}

function processesOf({ stack }: Pick<Landscape, 'stack'>): (readonly [ProcessKind, number])[] {
  return [...stack.processes.values()].flatMap(({ name, pid }) => [
    [name, pid] as const,
    ...descendantsOf(pid).map((child) => [kindOf(name, child.command), child.pid] as const),
  ]);
}

/** Compilers, import readers and SQLite processes count for the process that started them. */
function kindOf(parent: ProcessKind, command: string): ProcessKind {
  if (parent !== 'gateway') return parent;
  return command.includes('gateway-front') ? 'front' : 'handler';
}

async function countFiles({ stack: { dataDir }, temp }: Landscape): Promise<Record<string, number>> {
  const counts: Record<string, number> = { temp: await countBelow(temp) };
  for (const entry of await readdir(dataDir, { withFileTypes: true })) {
    // Shared by all stacks of this machine, by a link.
    if (!entry.isSymbolicLink())
      counts[entry.name] = entry.isDirectory() ? await countBelow(join(dataDir, entry.name)) : 1;
  }
  return counts;
}

async function countBelow(folder: string): Promise<number> {
  return (await readdir(folder, { recursive: true })).length;
}

function countRows(databaseUrl: string): Promise<Record<string, number>> {
  return withClient(databaseUrl, async (client) => {
    const { rows: tables } = await client.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname`,
    );
    const counts: Record<string, number> = {};
    for (const { name } of tables) {
      const { rows } = await client.query<{ count: number }>(`SELECT count(*)::int AS count FROM "${name}"`);
      counts[name] = rows[0]?.count ?? 0;
    }
    return counts;
  });
}

async function unfinishedJobs({ stack }: Landscape): Promise<number> {
  const { body } = await stack.api.get('/metrics');
  const counts = [...String(body).matchAll(/^edge_queue_jobs\{[^}]*state="(?!failed)\w+"[^}]*\} (\d+)$/gm)];
  if (counts.length === 0) throw new Error('The metrics have no jobs of queues');
  return counts.reduce((sum, [, jobs]) => sum + Number(jobs), 0);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return ''; // the process has ended
  }
}

function entries(folder: string): number {
  try {
    return readdirSync(folder).length;
  } catch {
    return 0;
  }
}
