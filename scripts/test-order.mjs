/** Which files with tests run beside others, and in which order. Names are those of compiled files. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './prepare.mjs';

const TESTS = 'dist/test/';
const TORTURE = `${TESTS}torture/`;

/** Files of `TORTURE` that run one after the other, with nothing beside them. */
const ALONE = new Set(
  [
    // Thousands of connections, and how much memory one takes.
    ...['http/many-connections', 'http/event-streams', 'http/slow-clients'],
    // Handlers that take all they get of processors and memory, or end whatever they reach.
    ...['hostile/handlers-resources', 'hostile/handlers-isolation'],
    // A gigabyte on disk and in flight.
    'large-objects',
    // What all processes have together, after a load.
    'soak',
  ].map((name) => `${TORTURE}${name}.test.js`),
);

/** Seconds that files take which take longest, as the list at the end of a run shows them. */
const SECONDS = {
  'torture/hostile/crates': 328,
  'torture/hostile/lying-lengths': 232,
  'torture/apply-kills': 207,
  'torture/schemathesis': 197,
  'torture/acme': 191,
  'processes/imports': 170,
  'torture/hostile/handlers-protocol': 166,
  'processes/sleep': 161,
  'processes/sandbox-levels': 161,
  'processes/alerts': 136,
  'api/export': 136,
  'processes/jobs': 129,
  'torture/machines/key-rotation': 125,
  'build/local-sources': 121,
  'api/arbitrary-input': 119,
  'processes/up': 110,
  'processes/compile': 104,
  'torture/hostile/builds': 99,
  'up/embedded-postgres': 97,
  'cli/project': 94,
  'processes/lying-servers': 91,
  'processes/restarts': 91,
  'processes/operators': 87,
  'torture/machines/rates': 79,
  'torture/hostile/damaged-answers': 74,
  'torture/hostile/service-callers': 50,
};
/** Of a file that is not in the list: those that start all processes take longer. */
const SECONDS_OF_OTHERS = { [`${TESTS}processes/`]: 30, [TORTURE]: 30, [TESTS]: 10 };

export function isTorture(file) {
  return file.startsWith(TORTURE);
}

export function isAlone(file) {
  return ALONE.has(file);
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
