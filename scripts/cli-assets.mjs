/**
 * Puts into cli/ what its package has besides the compiled program: the examples as templates, the sources of the SDK,
 * and the JSON Schema of edge.yaml. A build runs this, because npm runs no scripts here. In a checkout they are used
 * where they are.
 */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './prepare.mjs';

const EXAMPLES = join(ROOT, 'examples');
const TEMPLATES = join(ROOT, 'cli/templates');
const SDK = join(ROOT, 'rust/sdk');
const SDK_COPY = join(ROOT, 'cli/sdk');
/** What cargo has made, and what only those who change the SDK need. */
const LEFT_OUT = new Set(['target', 'tests', 'INTERNALS.md']);

for (const folder of [TEMPLATES, SDK_COPY]) rmSync(folder, { recursive: true, force: true });
for (const name of readdirSync(EXAMPLES)) {
  if (existsSync(join(EXAMPLES, name, 'endpoint.json')))
    cpSync(join(EXAMPLES, name), join(TEMPLATES, name), { recursive: true });
}
for (const name of readdirSync(SDK)) {
  if (!LEFT_OUT.has(name)) cpSync(join(SDK, name), join(SDK_COPY, name), { recursive: true });
}
cpSync(join(ROOT, 'docs/edge.schema.json'), join(ROOT, 'cli/edge.schema.json'));
// Its examples are not in the package.
const manifest = join(SDK_COPY, 'Cargo.toml');
writeFileSync(
  manifest,
  readFileSync(manifest, 'utf8').replace(/\n(?:#[^\n]*\n)*\[\[example\]\]\n(?:[^[\n][^\n]*\n)*/g, ''),
);
