/** The file of results: those of all benchmarks, and sections of benchmarks that are run by name only. */
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { line, type Row } from './report.js';

const FILE = fileURLToPath(new URL('../../../bench/RESULTS.md', import.meta.url));
const HEADING = /^## /m;

/** Replaces the text before the first section. */
export async function writeMainResults(text: string): Promise<void> {
  const sections = (await readFile(FILE, 'utf8')).split(HEADING).slice(1);
  await write([text, ...sections]);
}

/** Puts the rows of one benchmark in the place of those that answer the same questions; new ones after all others. */
export async function saveRows(rows: readonly Row[]): Promise<void> {
  const [main = '', ...sections] = (await readFile(FILE, 'utf8')).split(HEADING);
  const lines = main.trimEnd().split('\n');
  for (const row of rows) {
    const at = lines.findIndex((existing) => existing.startsWith(`| ${row.question} |`));
    if (at === -1) lines.push(line(row));
    else lines[at] = line(row);
  }
  await write([lines.join('\n'), ...sections]);
}

/** Replaces a section, or adds it at the end. */
export async function writeSection(title: string, text: string): Promise<void> {
  const [main = '', ...sections] = (await readFile(FILE, 'utf8')).split(HEADING);
  const section = `${title}\n\n${text}`;
  const at = sections.findIndex((existing) => existing.startsWith(`${title}\n`));
  if (at === -1) sections.push(section);
  else sections[at] = section;
  await write([main, ...sections]);
}

/** This machine, in one line. */
export async function machine(): Promise<string> {
  const model = cpus()[0]?.model ?? 'unknown CPU';
  const kernel = (await readFile('/proc/version', 'utf8')).split(' ')[2];
  const { stdout: rustc } = await execa('rustc', ['--version']);
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${availableParallelism()} cores (${model}), ${memory} GiB, Linux ${kernel}, Node ${process.version}, ${rustc}.`;
}

async function write(parts: readonly string[]): Promise<void> {
  await writeFile(FILE, `${parts.map((part) => part.trim()).join('\n\n## ')}\n`);
}
