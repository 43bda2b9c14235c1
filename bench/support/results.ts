/** The file of results: those of all benchmarks, and sections of benchmarks that are run by name only. */
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';

const FILE = fileURLToPath(new URL('../../../bench/RESULTS.md', import.meta.url));
const HEADING = /^## /m;

/** Replaces the text before the first section. */
export async function writeMainResults(text: string): Promise<void> {
  const sections = (await readFile(FILE, 'utf8')).split(HEADING).slice(1);
  await write([text, ...sections]);
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
