/** `npm run build`: compiles the TypeScript into dist/. */
import { build, requireNode } from './prepare.mjs';

requireNode();
await build();
