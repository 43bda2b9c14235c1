/** The version of the product, as package.json has it. */
import { readFileSync } from 'node:fs';

// From dist/src to the root of the package.
const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

export const VERSION = versionOf(manifest);

function versionOf(value: unknown): string {
  if (
    typeof value === 'object' &&
    value !== null &&
    'version' in value &&
    typeof value.version === 'string'
  ) {
    return value.version;
  }
  throw new Error('package.json has no version');
}
