/**
 * Puts into cli/ what its package has besides the compiled program: the examples as templates, and the JSON Schema of
 * edge.yaml. A build runs this, because npm runs no scripts here. In a checkout they are used where they are.
 */
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './prepare.mjs';

const EXAMPLES = join(ROOT, 'examples');
const TEMPLATES = join(ROOT, 'cli/templates');

// A copy of the SDK is of builds before.
for (const folder of [TEMPLATES, join(ROOT, 'cli/sdk')]) rmSync(folder, { recursive: true, force: true });
for (const name of readdirSync(EXAMPLES)) {
  if (existsSync(join(EXAMPLES, name, 'endpoint.json')))
    cpSync(join(EXAMPLES, name), join(TEMPLATES, name), { recursive: true });
}
cpSync(join(ROOT, 'docs/edge.schema.json'), join(ROOT, 'cli/edge.schema.json'));
