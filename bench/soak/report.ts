/** The results of a soak, for people and for `bench/RESULTS.md`. */
import { PROCESS_KINDS } from './figures.js';
import type { SoakReport } from './run.js';
import type { MemoryRule } from './verdict.js';

/** The report as Markdown. */
export function describeSoak(report: SoakReport, endpoints: number, rule: MemoryRule): string {
  const { outcomes, trends, before, after, leaks, durationMs } = report;
  const kinds = [...outcomes.all].map(
    ([kind, { done, errors }]) =>
      `| ${kind} | ${done} | ${[...errors.values()].reduce((sum, times) => sum + times, 0)} |`,
  );
  const memory = trends.map(
    ({ kind, quarters, held, slope, isFlat }) =>
      `| ${kind} | ${before.byKind[kind].processes} | ${[...quarters, ...held].map(mib).join(' | ')} | ${mib(slope)} | ${isFlat ? 'flat' : '**not flat**'} |`,
  );
  const fds = PROCESS_KINDS.map(
    (kind) => `${kind} ${before.byKind[kind].fds} / ${after.byKind[kind].fds}`,
  ).join(', ');
  return [
    `${round(durationMs / 60_000)} minutes of mixed traffic on ${endpoints} running endpoints. Every answer is checked; what is no documented refusal is an error.`,
    ['| traffic | as documented | errors |', '|---|---|---|', ...kinds].join('\n'),
    ...(outcomes.errors.length > 0 ? [list('Errors', outcomes.errors)] : []),
    [
      '| processes | how many | own memory, first quarter | second | third | last | objects hold, before | after | slope of an hour | |',
      '|---|---|---|---|---|---|---|---|---|---|',
      ...memory,
    ].join('\n'),
    `Own memory: anonymous pages, medians of quarters. Objects of JavaScript: what they hold after a forced collection, without traffic. Flat: of both, the last is no more than ${rule.share * 100} % and ${mib(rule.bytes)} above the first.`,
    `File descriptors before / after, without traffic: ${fds}.`,
    leaks.length > 0
      ? list('Left behind', leaks)
      : `Left behind: nothing. Kept by design: ${history(report)}.`,
  ].join('\n\n');
}

/** The size of stored history; each kind is pruned after its retention time. */
function history({ before, after }: SoakReport): string {
  const growth = (
    from: Readonly<Record<string, number>>,
    to: Readonly<Record<string, number>>,
    what: string,
  ) =>
    Object.entries(to)
      .map(([name, count]) => [name, count - (from[name] ?? 0)] as const)
      .filter(([, more]) => more > 0)
      .map(([name, more]) => `${more} ${what} ${name}`);
  return [
    ...growth(before.rows, after.rows, 'rows of'),
    ...growth(before.files, after.files, 'files in'),
  ].join(', ');
}

function list(title: string, lines: readonly string[]): string {
  return `${title}:\n\n${lines.map((line) => `- ${line}`).join('\n')}`;
}

function mib(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}

function round(value: number): string {
  return value.toFixed(value < 10 ? 1 : 0);
}
