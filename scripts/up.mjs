/** `npm run up`: from a fresh checkout to a running gateway. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { build } from './compile.mjs';
import { endQuietly, ensurePackages, fail, ROOT, requireNode, requireRust } from './prepare.mjs';

const USAGE = `Usage: npm run up [-- --help]

Starts Edge Gateway on this machine: installs the packages if they are missing, builds, starts PostgreSQL (unless
DATABASE_URL names one), migrates, starts the processes web, worker, gateway and actor-host, and deploys a sample
endpoint into an empty database. Settings are environment variables; --help lists them.
`;

requireNode();
if (wantsHelp()) {
  process.stdout.write(`${USAGE}\n${settings()}`);
} else {
  await requireRust();
  // The other native programs are built when the first request can be answered.
  await build(ensurePackages, process.env.TLS_PORT ? ['front', 'tls'] : ['front']);
  process.stdout.off('error', endQuietly); // from now on there are processes to stop
  await import('../dist/src/processes/up.js');
}

function wantsHelp() {
  try {
    return parseArgs({ options: { help: { type: 'boolean', short: 'h' } } }).values.help === true;
  } catch (error) {
    return fail(`${error.message}\n\n${USAGE}`, 2);
  }
}

/** Reads the table in docs/CONFIGURATION.md, which needs no build. */
function settings() {
  const rows = readFileSync(`${ROOT}docs/CONFIGURATION.md`, 'utf8').matchAll(
    /^\| `(\w+)` \| (.+?) \| (.+) \|$/gm,
  );
  return [...rows]
    .map(([, name, shown, description]) => `${name} (default: ${shown})\n    ${description}\n`)
    .join('')
    .replaceAll('`', '');
}
