/** Lets a benchmark file run alone: `node dist/bench/<name>.js` prints its rows; with `--save` it keeps them, too. */
import { pathToFileURL } from 'node:url';
import { type Row, table } from './report.js';
import { saveRows } from './results.js';

/** A benchmark: measures and returns its rows. */
export type Benchmark = () => Promise<readonly Row[]>;

/** Runs the benchmark if its file is the main program. */
export async function runAlone(moduleUrl: string, benchmark: Benchmark): Promise<void> {
  if (moduleUrl !== pathToFileURL(process.argv[1] ?? '').href) return;
  const rows = await benchmark();
  process.stdout.write(`${table(rows)}\n`);
  if (process.argv.includes('--save')) await saveRows(rows);
}
