/**
 * `npm run check`: the packages of a first start, `npm ci --omit=dev`, have their types with them: the product is
 * compiled with them alone.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ROOT } from './prepare.mjs';

const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const missing = Object.keys(devDependencies).filter(
  (name) => name.startsWith('@types/') && Object.hasOwn(dependencies, typedBy(name)),
);
if (missing.length > 0) fail(`package.json: these belong to the dependencies: ${missing.join(', ')}`);

/** `@types/scope__name` has the types of `@scope/name`. */
function typedBy(name) {
  return name.replace('@types/', '').replace(/^(.+)__(.+)$/, '@$1/$2');
}
