/**
 * `node scripts/bundle.mjs FOLDER [OUT.zip]`: packs a folder into a bundle for `POST /api/import/bundle`. The same
 * files make the same bytes, whenever and wherever they are packed.
 */
import { lstatSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { ensurePackages, fail, requireNode } from './prepare.mjs';

const USAGE = `Usage: node scripts/bundle.mjs FOLDER [OUT.zip]

Packs a folder into a bundle that POST /api/import/bundle takes. OUT.zip is FOLDER.zip, beside the folder, unless given.

The folder has an OpenAPI document (openapi.yaml, openapi.json, api.yaml or spec.yaml), or a bundle.yaml with routes, or
both; and handlers, *.rs, in handlers/, in src/ or beside the document. Files and folders whose names begin with a dot
are left out.
`;

/** A bundle needs one of these. */
const ROOTS = ['openapi.yaml', 'openapi.json', 'api.yaml', 'spec.yaml', 'bundle.yaml'];
/** The earliest time in a ZIP, which has local time. */
const FIXED_TIME = new Date(1980, 0, 1);

requireNode();
const { folder, out } = readArguments();
const paths = filesIn(folder);
if (!ROOTS.some((root) => paths.includes(root))) {
  fail(`${folder} is no bundle: it has neither ${ROOTS.slice(0, -1).join(', ')} nor ${ROOTS.at(-1)}.`);
}
await ensurePackages();
const { zipSync } = await import('fflate');
const files = Object.fromEntries(
  paths.map((path) => [path, new Uint8Array(readFileSync(join(folder, path)))]),
);
const archive = zipSync(files, { level: 9, mtime: FIXED_TIME });
writeWhole(out, archive);
process.stdout.write(`${out}: ${paths.length} files, ${archive.length} bytes\n`);

function readArguments() {
  const { values, positionals } = parse();
  if (values.help) {
    process.stdout.write(USAGE);
    process.exit(0);
  }
  const [from, to, ...more] = positionals;
  if (from === undefined || more.length > 0) fail(USAGE);
  const folder = resolve(from);
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) fail(`${folder} is not a folder.`);
  const out = to === undefined ? `${folder}.zip` : resolve(to);
  if (out.startsWith(folder + sep)) fail(`${out} is in the folder that is packed; write it somewhere else.`);
  if (lstatSync(out, { throwIfNoEntry: false })?.isDirectory()) fail(`${out} is a folder; name a file.`);
  return { folder, out };
}

function parse() {
  try {
    return parseArgs({ allowPositionals: true, options: { help: { type: 'boolean', short: 'h' } } });
  } catch (error) {
    return fail(`${error.message}\n\n${USAGE}`);
  }
}

/** Paths of all files, with slashes, in an order that depends only on their names. */
function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => ({
      entry,
      path: relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'),
    }))
    .filter(
      ({ entry, path }) => !entry.isDirectory() && !path.split('/').some((name) => name.startsWith('.')),
    )
    .map(({ entry, path }) => {
      if (!entry.isFile()) fail(`${join(folder, path)} is not a plain file; put the file itself there.`);
      return path;
    })
    .sort();
}

/** Writes a file atomically. */
function writeWhole(path, bytes) {
  const unfinished = join(dirname(path), `.${basename(path)}.${process.pid}`);
  try {
    writeFileSync(unfinished, bytes);
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    fail(`${path} cannot be written: ${error.message}`);
  }
}
