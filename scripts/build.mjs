/**
 * `npm run build`: compiles the product into dist/, and the tests and benchmarks where their packages are installed.
 */
import { build, buildAll } from './compile.mjs';
import { hasTestPackages, requireNode } from './prepare.mjs';

requireNode();
await (hasTestPackages() ? buildAll() : build());
