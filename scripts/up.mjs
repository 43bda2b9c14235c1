/** `npm run up`: from a fresh checkout to a running gateway. */
import { build, ensurePackages, requireNode, requireRust } from './prepare.mjs';

requireNode();
await requireRust();
await ensurePackages();
await build();
await import('../dist/src/processes/up.js');
