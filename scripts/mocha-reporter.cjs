/**
 * mocha's spec reporter, which also names the file of each failed test and lists the slowest files. It writes its
 * counts and failures to the file RESULT_FILE, for the summary of `scripts/test.mjs`.
 */
const { writeFileSync } = require('node:fs');
const { relative } = require('node:path');
const { reporters, Runner } = require('mocha');

const { EVENT_HOOK_END, EVENT_TEST_END } = Runner.constants;
const SLOWEST = 15;

module.exports = class extends reporters.Spec {
  /** Milliseconds of the tests and hooks of each file. */
  #durations = new Map();

  constructor(runner, options) {
    super(runner, options);
    const add = ({ file, duration }) => {
      if (file) this.#durations.set(file, (this.#durations.get(file) ?? 0) + (duration ?? 0));
    };
    runner.on(EVENT_TEST_END, add);
    runner.on(EVENT_HOOK_END, add);
  }

  epilogue() {
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

  #listSlowest() {
    const files = [...this.#durations].sort(([, left], [, right]) => right - left);
    if (files.length < 2) return;
    const total = files.reduce((sum, [, duration]) => sum + duration, 0);
    const line = (duration, text) => `${(duration / 1_000).toFixed(1).padStart(8)} s  ${text}\n`;
    process.stdout.write('\n  Slowest files\n');
    for (const [file, duration] of files.slice(0, SLOWEST))
      process.stdout.write(line(duration, sourceOf(file)));
    process.stdout.write(line(total, `all ${files.length} files`));
  }
};

/** The path of a test file in the repository. */
function sourceOf(file) {
  if (!file) return '(no file)';
  return relative(process.cwd(), file)
    .replace(/^dist\//, '')
    .replace(/\.js$/, '.ts');
}
