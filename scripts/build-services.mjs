/** Builds the native programs of services, at a low priority: `npm run up` starts this when all else runs already. */
import { setPriority } from 'node:os';
import { buildNative } from './native.mjs';

setPriority(10);
await buildNative(['services']);
process.send?.({ type: 'ready' });
