#!/usr/bin/env node
// Only starts the program: what it is made of is compiled into dist/.
const { run } = await import('../dist/main.js').catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND' || !error.message.includes('dist/main.js')) throw error;
  process.stderr.write('edge is not built. Run this in the checkout: npm ci && npm run build\n');
  process.exit(1);
});
await run(process.argv.slice(2));
