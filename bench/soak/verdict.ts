/** Judges whether figures are stable. */
import type { Figures, HeldMemory, ProcessFigures, ProcessKind } from './figures.js';
import { PROCESS_KINDS } from './figures.js';

/**
 * Memory is flat when it grows by at most this share and this amount: what objects hold after a collection, between the
 * moments without traffic before and after, and the pages that a process has, between the first and the last quarter.
 * V8 collects the whole heap every few minutes, so the pages of a healthy process are a saw, whose lowest point is
 * where a sample happened to be.
 */
export interface MemoryRule {
  readonly share: number;
  readonly bytes: number;
}

/** Memory of the processes of one kind over the measured time. */
export interface MemoryTrend {
  readonly kind: ProcessKind;
  /** Medians of each quarter of the samples, bytes. */
  readonly quarters: readonly [number, number, number, number];
  /** What objects of JavaScript held before and after, bytes. */
  readonly held: readonly [number, number];
  /** Slope of the least-squares line through all samples, bytes an hour. */
  readonly slope: number;
  readonly isFlat: boolean;
}

/** Figures at one moment under traffic. */
export interface Sample {
  readonly atMs: number;
  readonly byKind: Figures['byKind'];
}

/** Judges samples under traffic, after warm-up, and what objects held before and after it. */
export function memoryTrends(
  samples: readonly Sample[],
  heldBefore: HeldMemory,
  heldAfter: HeldMemory,
  rule: MemoryRule,
): MemoryTrend[] {
  const isBounded = (before: number, after: number) => after <= before * (1 + rule.share) + rule.bytes;
  return PROCESS_KINDS.map((kind) => {
    const points = samples.map(({ atMs, byKind }) => ({ x: atMs, y: byKind[kind].anonymous }));
    const quarter = (number: number) => {
      const at = (part: number) => Math.round((points.length * part) / 4);
      return middle(points.slice(at(number - 1), at(number)).map(({ y }) => y));
    };
    const quarters = [quarter(1), quarter(2), quarter(3), quarter(4)] as const;
    const held = [heldBefore[kind], heldAfter[kind]] as const;
    const isFlat = isBounded(...held) && isBounded(quarters[0], quarters[3]);
    return { kind, quarters, held, slope: slopeOf(points) * 3_600_000, isFlat };
  });
}

/** Tables whose rows are kept for a time, or up to a number for each endpoint, by design. */
const HISTORY = [
  ...['builds', 'artifacts', 'imports', 'import_handlers', 'endpoint_versions', 'deployments'],
  ...['logs', 'log_writers', 'figures'],
  // As long as the log: a row for each endpoint that the soak deletes.
  'former_endpoints',
  // For so many days (AUDIT_RETENTION_DAYS): a row for each change that the soak makes.
  'audit',
];
/** Executables of all builds, and those that ran on the machine: also kept for a time. */
const KEPT_FILES = ['artifacts', 'handlers'];
/**
 * Tolerance for file descriptors between two quiet moments: a few pooled connections, with the databases and between
 * processes; handlers and the actor host keep the connections of concurrent calls for a while, which vary by two or
 * three. Leaks per request, deployment or call are larger, because the shortest soak has dozens of each.
 */
const FD_SLACK = 4;
const FD_SLACK_OF_CALLS = 8;
const WITH_CALLS: readonly ProcessKind[] = ['handler', 'actor-host'];

/**
 * Compares two moments without traffic.
 * @returns figures that grew and should not have, in words
 */
export function leaks(before: Figures, after: Figures): string[] {
  const found: string[] = [];
  const compare = (what: string, from: number, to: number, slack = 0) => {
    if (to > from + slack) found.push(`${what}: ${from} before, ${to} after`);
  };
  for (const kind of PROCESS_KINDS) {
    const [old, now]: [ProcessFigures, ProcessFigures] = [before.byKind[kind], after.byKind[kind]];
    compare(`processes of ${kind}`, old.processes, now.processes);
    compare(
      `file descriptors of ${kind}`,
      old.fds,
      now.fds,
      WITH_CALLS.includes(kind) ? FD_SLACK_OF_CALLS : FD_SLACK,
    );
  }
  for (const [table, rows] of Object.entries(after.rows))
    if (!HISTORY.includes(table)) compare(`rows of ${table}`, before.rows[table] ?? 0, rows);
  for (const [folder, files] of Object.entries(after.files))
    if (!KEPT_FILES.includes(folder)) compare(`files in ${folder}`, before.files[folder] ?? 0, files);
  compare('unfinished jobs', 0, after.jobs);
  return found;
}

/** Whether any figure, other than memory, has fallen since an earlier moment. */
export function hasFallen(earlier: Figures, now: Figures): boolean {
  const isLess = (from: Readonly<Record<string, number>>, to: Readonly<Record<string, number>>) =>
    Object.entries(from).some(([name, count]) => (to[name] ?? 0) < count);
  const countsOf = ({ byKind }: Figures, what: 'processes' | 'fds') =>
    Object.fromEntries(PROCESS_KINDS.map((kind) => [kind, byKind[kind][what]]));
  return (
    isLess(countsOf(earlier, 'processes'), countsOf(now, 'processes')) ||
    isLess(countsOf(earlier, 'fds'), countsOf(now, 'fds')) ||
    isLess(earlier.rows, now.rows) ||
    isLess(earlier.files, now.files)
  );
}

function middle(values: readonly number[]): number {
  return [...values].sort((left, right) => left - right)[values.length >> 1] ?? 0;
}

function slopeOf(points: readonly { x: number; y: number }[]): number {
  const mean = (of: 'x' | 'y') => points.reduce((sum, point) => sum + point[of], 0) / points.length;
  const [x, y] = [mean('x'), mean('y')];
  const spread = points.reduce((sum, point) => sum + (point.x - x) ** 2, 0);
  const shared = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0);
  return spread === 0 ? 0 : shared / spread;
}
