/** Which files with tests run beside others, and in which order. Names are those of compiled files. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './prepare.mjs';

const TESTS = 'dist/test/';
const TORTURE = `${TESTS}torture/`;

/** Files and folders of `TORTURE` that do not saturate the machine, and measure nothing that others of them change. */
const WAITING = [
  ...['cli/', 'import/', 'processes/', 'ui/'],
  ...['hostile/lying-lengths', 'hostile/damaged-answers', 'hostile/service-callers', 'hostile/sqlite-limits'],
  ...['apply-kills', 'machines/key-rotation', 'machines/rates', 'acme', 'faults/first-start'],
  ...['node-versions', 'up', 'embedded-postgres', 'without-cargo', 'packed-cli'],
  ...['exports', 'exports-published', 'arbitrary-input'],
].map((name) => (name.endsWith('/') ? `${TORTURE}${name}` : `${TORTURE}${name}.test.js`));

/** Seconds that files take which take longest of those that run beside others; the end of a run lists them. */
const SECONDS = {
  'torture/apply-kills': 225,
  'processes/imports': 150,
  'torture/import/reader': 120,
  'processes/compile': 120,
  'torture/hostile/lying-lengths': 115,
  'processes/jobs': 100,
  'torture/processes/rollback': 100,
  'torture/processes/examples': 100,
  'torture/hostile/service-callers': 90,
  'torture/machines/key-rotation': 85,
  'torture/processes/sleep': 80,
  'torture/processes/alerts': 75,
  'torture/acme': 70,
  'torture/processes/isolated-services': 65,
  'processes/restarts': 65,
  'cli/commands': 60,
  'processes/versions': 60,
  'torture/hostile/damaged-answers': 60,
  'torture/packed-cli': 60,
  'torture/up': 60,
  'torture/processes/who-may-write': 55,
  'ui/endpoint-code': 55,
  'processes/apply': 50,
  'torture/processes/lying-servers': 50,
  'torture/cli/apply': 45,
  'torture/cli/cargo-project': 45,
  'torture/ui/live': 45,
  'torture/processes/apply-gateways': 35,
  'torture/hostile/sqlite-limits': 35,
  'torture/machines/rates': 35,
};
/** Seconds of a file that is not in the list: those that start all processes take longer. */
const SECONDS_OF_OTHERS = { [`${TESTS}processes/`]: 30, [TESTS]: 10 };

export function isTorture(file) {
  return file.startsWith(TORTURE);
}

/** Whether it may run beside others of `TORTURE`. */
export function mostlyWaits(file) {
  return WAITING.some((beginning) => file.startsWith(beginning));
}

/** Starts long files first, so that none runs alone at the end; of others, large ones. */
export function longestFirst(files) {
  const size = (file) => statSync(join(ROOT, file)).size;
  return files.toSorted((left, right) => seconds(right) - seconds(left) || size(right) - size(left));
}

function seconds(file) {
  const name = file.slice(TESTS.length).replace(/\.test\.js$/, '');
  if (Object.hasOwn(SECONDS, name)) return SECONDS[name];
  return Object.entries(SECONDS_OF_OTHERS).find(([folder]) => file.startsWith(folder))?.[1] ?? 0;
}
