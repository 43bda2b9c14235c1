/** `npm run check`: the catalogue of errors has codes in one style, and statuses of failures. */
import { fail } from './prepare.mjs';

const { ERROR_CATALOGUE } = await import('../dist/src/errors.js');

const wrong = Object.entries(ERROR_CATALOGUE)
  .filter(([code, { status }]) => !/^[a-z]+(?:_[a-z]+)*$/.test(code) || status < 400 || status > 599)
  .map(([code, { status }]) => `  ${code}: ${status}`);
if (wrong.length > 0) fail(`src/errors.ts:\n${wrong.join('\n')}`);
