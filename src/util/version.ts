/** The version of the product, as package.json has it. */
import { readFileSync } from 'node:fs';

// The root of the package, from dist/src/util.
const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');

export const { version: VERSION } = JSON.parse(manifest) as { version: string };
