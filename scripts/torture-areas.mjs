/**
 * Which torture tests belong to which paths. A change runs those of the paths that differ from the newest commit whose
 * whole suite was green, which `test/green-commit.json` names; `npm run test:all` runs everything, and writes it.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from './prepare.mjs';

const GREEN = 'test/green-commit.json';

/** Run with every change: what must not break whatever else does. Names of files below test/torture, or folders. */
export const ALWAYS = [
  'faults/actor-host-killed',
  'faults/compile-interrupted',
  'faults/database-away',
  'faults/deployment-killed',
  'faults/front-killed',
  'faults/gateway-killed',
  'faults/graceful-shutdown',
  'faults/handler-killed',
  'faults/redeployments',
  'faults/web-ends',
  'hostile/handlers-isolation',
];

const NOTHING = [];
const ALL = [''];
const HTTP = [
  'validate-import',
  ...['http/', 'browser/cors', 'hostile/handlers-protocol', 'machines/rates', 'machines/rolling-restart'],
  ...['large-objects', 'processes/large-', 'processes/sleep', 'soak'],
];
const HANDLERS = [
  ...['hostile/handlers-', 'http/event-streams', 'large-objects', 'machines/lifecycle', 'soak'],
  ...['processes/examples', 'processes/large-', 'processes/sdk-0.1', 'processes/sleep'],
];
const BUILDS = [
  'hostile/builds',
  'hostile/crates',
  'faults/first-start',
  'faults/disk-full',
  'local-sources',
  'cli/cargo-project',
];
/** What people have on their machines. */
const CARGO = ['packed-cli', 'cli/cargo-project'];
const STARTS = ['up', 'local-gateway', 'without-cargo', 'node-versions'];
const SERVICES = [
  ...[
    'sqlite-memory',
    'hostile/damaged-answers',
    'hostile/lying-lengths',
    'hostile/service-callers',
    'hostile/sqlite-limits',
    'faults/hanging-backend',
    'processes/isolated-services',
    'processes/lying-servers',
    'processes/sqlite-files',
  ],
  ...['machines/services', 'large-objects', 'processes/large-objects'],
];
const MACHINES = ['machines/', 'faults/disk-full', 'soak'];
/** What several writers decide together. */
const APPLIES = [
  ...['apply-kills', 'processes/apply-gateways', 'processes/apply-keys', 'processes/apply-routes'],
  ...['processes/rollback', 'processes/who-may-write'],
];
const QUEUES = [...APPLIES, 'faults/redis-away', 'faults/imports-database', 'machines/services'];
const DATA = [...APPLIES, 'faults/', 'machines/', 'processes/alerts', 'soak'];
const API = [
  ...APPLIES,
  ...['schemathesis', 'arbitrary-input', 'exports', 'exports-published', 'cli/', 'processes/alerts', 'ui/'],
];

/**
 * Beginnings of paths, and the torture tests that show what may break there. Of several that fit, the longest counts. A
 * path that none fits runs everything.
 */
export const AREAS = {
  'rust/front': HTTP,
  'rust/front/src/challenges.rs': ['acme'],
  'rust/front/tests/': NOTHING,
  'rust/front-tls/': [...HTTP, 'acme'],
  'rust/wire/': [...HTTP, ...HANDLERS, ...SERVICES],
  'rust/sdk/': [...HANDLERS, 'http/autobahn', 'faults/first-start', 'generated-handlers', ...CARGO],
  'rust/sdk/README.md': NOTHING,
  'rust/sdk/tests/': NOTHING,
  'rust/sdk/core/src/services/': [...SERVICES, 'processes/examples'],
  'rust/sdk/core/src/wire/': [...HTTP, ...HANDLERS, ...SERVICES],
  'rust/launcher/': [
    ...['hostile/', 'faults/disk-full', 'http/many-connections', 'processes/sandbox-levels'],
    ...SERVICES,
  ],
  'rust/service/': SERVICES,
  'rust/starter/': ['hostile/', 'processes/sandbox-levels', ...SERVICES],
  'rust/postgres-service/': SERVICES,
  'rust/sqlite-service/': SERVICES,
  'rust/execute/': STARTS,
  'src/bootstrap/': [...STARTS, 'faults/', 'hostile/', 'machines/services'],
  'src/rights/': [...STARTS, 'faults/disk-full', 'hostile/', 'processes/sandbox-levels'],
  'src/sandbox/': [
    ...['hostile/', 'faults/disk-full', 'http/many-connections', 'processes/sandbox-levels'],
    ...SERVICES,
  ],
  'src/build/': BUILDS,
  'src/artifacts/': ['faults/disk-full', 'machines/lifecycle', 'machines/lost'],
  'src/actors/': SERVICES,
  'src/gateway/': [...HANDLERS, ...MACHINES],
  'src/contracts/': [...HTTP, ...MACHINES, ...SERVICES],
  'src/gateway/front/': [...HTTP, ...MACHINES],
  'src/gateway/telemetry/': [...HANDLERS, ...MACHINES, 'processes/alerts'],
  'src/gateway/front/certificates.ts': ['acme'],
  'src/gateway/front/challenges.ts': ['acme'],
  'src/gateway/policies/policy-compiler.ts': [...HTTP, ...MACHINES],
  'src/http/': ['http/', 'schemathesis'],
  'src/wire/': SERVICES,
  'src/reconcile/': DATA,
  'src/store/': [...DATA, ...API, 'acme'],
  'src/store/acme': ['acme'],
  'migrations/': DATA,
  'src/queues/': QUEUES,
  'src/model/': [...API, 'validate-import', 'machines/services'],
  'src/lifecycle/': [
    ...APPLIES,
    'schemathesis',
    'faults/redis-away',
    'machines/lifecycle',
    'machines/lost',
    'soak',
  ],
  'src/internal/': MACHINES,
  'src/apply/': [...APPLIES, 'exports', 'exports-published', 'cli/', 'ui/apply'],
  'src/import/': [
    'import/',
    'validate-import',
    'faults/imports-database',
    'generated-handlers',
    'machines/services',
    'exports-published',
    'ui/import',
  ],
  'src/secrets/': ['machines/key-rotation', 'processes/apply-keys'],
  'src/api/': [...API, 'browser/sign-in', 'browser/rebinding'],
  'src/api/pages/sdk-crates.ts': CARGO,
  'src/webhooks/': ['processes/alerts'],
  'src/metrics/': ['soak'],
  'src/processes/': [...STARTS, 'faults/', 'machines/'],
  'src/processes/actor-host': [...STARTS, ...SERVICES],
  'src/processes/gateway': [...STARTS, ...HTTP, ...HANDLERS, ...MACHINES],
  'src/processes/web': [...STARTS, ...API, 'browser/', 'http/slow-clients', 'machines/'],
  'src/settings/handlers.ts': [...HANDLERS, ...BUILDS, ...SERVICES],
  'src/settings/http.ts': [...HTTP, 'schemathesis'],
  'src/settings/imports.ts': ['faults/imports-database', 'exports', 'exports-published', 'machines/services'],
  'src/settings/installation.ts': [...STARTS, ...DATA, ...API],
  'src/threads/': [...API, 'import/'],
  'src/errors.ts': ['schemathesis'],
  'src/up/': ['embedded-postgres', ...STARTS],
  'jobs/': [...QUEUES, ...BUILDS, ...MACHINES],
  'jobs/acme': ['acme'],
  'jobs/alerts.ts': ['processes/alerts'],
  'jobs/apply': APPLIES,
  'jobs/reseal.ts': ['machines/key-rotation'],
  'jobs/worker': ALL,
  // What everyday tests show, and what no torture test uses, or only some.
  'cli/': ['cli/', 'faults/first-start', 'local-gateway', 'node-versions', 'packed-cli'],
  'ui/': ['ui/'],
  'docs/': NOTHING,
  'bench/': NOTHING,
  'bench/soak/': ['soak'],
  'examples/': ['processes/examples'],
  'examples/hello/': ['packed-cli', 'processes/examples', 'up'],
  'deploy/': NOTHING,
  'scripts/': NOTHING,
  // Tests run when they have changed themselves, or what they import.
  'test/': NOTHING,
  'test/golden/': [...HTTP, ...SERVICES],
  'test/support/hooks.ts': ALL,
  '.ci/': NOTHING,
  '.gitignore': NOTHING,
  'biome.json': NOTHING,
  'ARCHITECTURE.md': NOTHING,
  'CONTRIBUTING.md': NOTHING,
  'README.md': NOTHING,
  // Scripts that make the product what it is.
  'scripts/build': STARTS,
  'scripts/cli-assets.mjs': ['packed-cli'],
  'scripts/compile.mjs': STARTS,
  'scripts/native.mjs': STARTS,
  'scripts/prepare.mjs': STARTS,
  'scripts/processes.mjs': [...STARTS, 'soak'],
  'scripts/ui.mjs': STARTS,
  'scripts/sdk-sources.mjs': CARGO,
  'scripts/schemathesis-requirements.txt': ['schemathesis'],
  'scripts/test-servers.mjs': ALL,
  'scripts/up.mjs': STARTS,
  'package.json': [...STARTS, 'soak'],
  'package-lock.json': ALL,
};

/**
 * The torture tests of a change.
 * @param files all compiled test files, such as `dist/test/torture/soak.test.js`
 * @param root the checkout
 * @returns which of them belong to what differs from the newest green commit, and why, for people
 */
export function affectedTorture(files, root = ROOT) {
  const green = greenCommit(root);
  const changed = green && changedSince(green, root);
  if (!changed) {
    const reason = green ? `its history has no ${green}` : `there is no ${GREEN}`;
    return { files, reason: `everything: ${reason}` };
  }
  const fits = selectorFor(changed);
  const selected = files.filter((file) => fits(nameOf(file)) || importsAny(file, changed, root));
  return { files: selected, reason: `${changed.length} paths differ from ${green.slice(0, 12)}` };
}

/** Whether a torture test, such as `faults/disk-full`, belongs to these paths. Also used by its own tests. */
export function selectorFor(paths) {
  const selected = [...ALWAYS, ...paths.flatMap(areaOf)];
  return (name) => selected.some((beginning) => name.startsWith(beginning));
}

function areaOf(path) {
  const fitting = Object.keys(AREAS).filter((beginning) => path.startsWith(beginning));
  if (fitting.length === 0) return ALL;
  return AREAS[fitting.toSorted((left, right) => right.length - left.length)[0]];
}

const nameOf = (file) => file.replace('dist/test/torture/', '').replace('.test.js', '');

/** Whether a test, or what it imports of test/, has changed itself. */
function importsAny(file, changed, root, seen = new Set()) {
  if (seen.has(file) || !file.startsWith('dist/test/') || !existsSync(join(root, file))) return false;
  seen.add(file);
  if (changed.includes(file.replace(/^dist\//, '').replace(/\.js$/, '.ts'))) return true;
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(/'(\.[^']+\.js)'/g)].some(([, path]) =>
    importsAny(join(dirname(file), path), changed, root, seen),
  );
}

function greenCommit(root) {
  const file = join(root, GREEN);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).commit : undefined;
}

/** Paths that differ between a commit and the working tree; undefined when git does not know. */
function changedSince(commit, root) {
  const tracked = git(root, 'diff', '--name-only', '--no-renames', commit);
  const added = git(root, 'ls-files', '--others', '--exclude-standard');
  if (tracked === undefined || added === undefined) return undefined;
  return [...tracked, ...added].filter((path) => path !== GREEN);
}

/** The commit of the working tree, if it has no other changes. */
export function cleanCommit() {
  const [head] = git(ROOT, 'rev-parse', 'HEAD') ?? [];
  return git(ROOT, 'status', '--porcelain')?.length === 0 ? head : undefined;
}

/** Records that the whole suite was green. */
export function recordGreen(commit, tests) {
  const day = new Date().toISOString().slice(0, 10);
  writeFileSync(join(ROOT, GREEN), `${JSON.stringify({ commit, tests, day }, null, 2)}\n`);
  return GREEN;
}

/** The lines that git prints; undefined when it fails. */
function git(root, ...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.split('\n').filter(Boolean) : undefined;
}
