/**
 * `npm run contracts`: writes `src/contracts`, the messages between programs in Rust and in TypeScript, from the types
 * of Rust (`rust/contracts`). With `--check`, which `npm run check` uses, nothing is written, and a file that differs
 * is a failure. Nothing else needs it: the files are in the repository.
 */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fail, ROOT, run } from './prepare.mjs';

const FOLDER = 'src/contracts';
const isCheck = process.argv.includes('--check');

const texts = await generated();
if (!texts) fail('The contracts cannot be written; the reason is above.');
if (isCheck) check(texts);
else write(texts);

/** The texts of the files by their names; undefined when a type of Rust cannot be written. */
async function generated() {
  const output = mkdtempSync(join(tmpdir(), 'edge-gateway-contracts-'));
  try {
    const args = ['run', '--locked', '--quiet', '-p', 'edge-contracts', '--', ROOT, output];
    if ((await run('cargo', args, { cwd: join(ROOT, 'rust') })) !== 0) return undefined;
    return new Map(readdirSync(output).map((name) => [name, formatted(name, join(output, name))]));
  } finally {
    rmSync(output, { recursive: true });
  }
}

function formatted(name, file) {
  const biome = `${ROOT}node_modules/.bin/biome`;
  const input = readFileSync(file);
  return execFileSync(biome, ['format', `--stdin-file-path=${FOLDER}/${name}`], {
    cwd: ROOT,
    input,
  }).toString();
}

function check(texts) {
  const present = existsSync(join(ROOT, FOLDER)) ? readdirSync(join(ROOT, FOLDER)) : [];
  const outdated = [...new Set([...texts.keys(), ...present])].filter((name) => {
    const path = join(ROOT, FOLDER, name);
    return !texts.has(name) || !existsSync(path) || readFileSync(path, 'utf8') !== texts.get(name);
  });
  if (outdated.length === 0) return;
  const names = outdated.map((name) => `${FOLDER}/${name}`).join(', ');
  fail(
    `The types in rust/ say something else than ${names}: run \`npm run contracts\`, and commit what it writes.`,
  );
}

function write(texts) {
  rmSync(join(ROOT, FOLDER), { recursive: true, force: true });
  mkdirSync(join(ROOT, FOLDER));
  for (const [name, text] of texts) writeFileSync(join(ROOT, FOLDER, name), text);
}
