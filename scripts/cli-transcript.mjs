/** `node scripts/cli-transcript.mjs`: runs the commands of the transcript of docs/CLI.md, and writes it there. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildAll } from './compile.mjs';
import { ensureAllPackages, fail, ROOT, requireNode, requireRust } from './prepare.mjs';

const FILE = join(ROOT, 'docs/CLI.md');

requireNode();
await requireRust();
await buildAll(ensureAllPackages);
process.chdir(ROOT);
const { startStack } = await import('../dist/test/support/processes.js');
const { stopServer } = await import('../dist/test/support/postgres.js');
const { tempDir } = await import('../dist/test/support/temp.js');
const { transcriptOf, withTranscript } = await import('../dist/test/support/transcript.js');

const folder = await tempDir('transcript');
const stack = await startStack();
try {
  const page = withTranscript(readFileSync(FILE, 'utf8'), await transcriptOf(stack, folder.path));
  if (page === undefined) fail('docs/CLI.md has no place for the transcript.');
  writeFileSync(FILE, page);
} finally {
  await stack.close();
  await stopServer();
  await folder.remove();
}
