/** The version of the product, as package.json has it. */
import { readFileSync } from 'node:fs';

// From dist/src/util to the root of the package.
const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');

export const { version: VERSION } = JSON.parse(manifest) as { version: string };
