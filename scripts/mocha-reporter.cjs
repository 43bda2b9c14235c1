/**
 * mocha's spec reporter, which also names the file of each failed test and lists the slowest files. It writes its
 * counts and failures to the file RESULT_FILE, for the summary of `scripts/test.mjs`.
 */
const { writeFileSync } = require('node:fs');
const { relative } = require('node:path');
const { reporters, Runner } = require('mocha');

const { EVENT_HOOK_END, EVENT_TEST_END } = Runner.constants;
const SLOWEST = 20;

module.exports = class extends reporters.Spec {
  /** Milliseconds of the tests and hooks of each file. */
  #durations = new Map();
  /** The number of tests of each file. */
  #tests = new Map();

  constructor(runner, options) {
    super(runner, options);
    const add = (map, file, value) => file && map.set(file, (map.get(file) ?? 0) + (value ?? 0));
    runner.on(EVENT_TEST_END, ({ file, duration }) => {
      add(this.#durations, file, duration);
      add(this.#tests, file, 1);
    });
    runner.on(EVENT_HOOK_END, ({ file, duration }) => add(this.#durations, file, duration));
  }

  epilogue() {
    this.#listKinds();
    this.#listSlowest();
    for (const failure of this.failures) {
      const titles = failure.titlePath();
      failure.titlePath = () => [sourceOf(failure.file), ...titles];
    }
    super.epilogue();
    if (!process.env.RESULT_FILE) return;
    const { passes, failures, pending } = this.stats;
    const failed = this.failures.map((test) => `${test.titlePath().join(' › ')}\n${test.err?.message ?? ''}`);
    writeFileSync(
      process.env.RESULT_FILE,
      JSON.stringify({ counts: { passed: passes, failed: failures, skipped: pending }, failed }),
    );
  }

  /** The tests of each folder of test/. */
  #listKinds() {
    const kinds = new Map();
    for (const [file, count] of this.#tests) {
      const kind = sourceOf(file).split('/').slice(0, 2).join('/');
      const { tests, duration } = kinds.get(kind) ?? { tests: 0, duration: 0 };
      kinds.set(kind, { tests: tests + count, duration: duration + (this.#durations.get(file) ?? 0) });
    }
    if (kinds.size < 2) return;
    process.stdout.write('\n  Tests by kind\n');
    for (const [kind, { tests, duration }] of [...kinds].sort())
      process.stdout.write(line(duration, `${String(tests).padStart(5)}  ${kind}`));
  }

  #listSlowest() {
    const files = [...this.#durations].sort(([, left], [, right]) => right - left);
    if (files.length < 2) return;
    const total = files.reduce((sum, [, duration]) => sum + duration, 0);
    process.stdout.write('\n  Slowest files\n');
    for (const [file, duration] of files.slice(0, SLOWEST))
      process.stdout.write(line(duration, sourceOf(file)));
    process.stdout.write(line(total, `all ${files.length} files`));
  }
};

function line(duration, text) {
  return `${(duration / 1_000).toFixed(1).padStart(8)} s  ${text}\n`;
}

/** The path of a test file in the repository. */
function sourceOf(file) {
  if (!file) return '(no file)';
  return relative(process.cwd(), file)
    .replace(/^dist\//, '')
    .replace(/\.js$/, '.ts');
}
