/** mocha's spec reporter, which also leaves its counts in the file RESULT_FILE names, for the closing line. */
const { writeFileSync } = require('node:fs');
const { reporters, Runner } = require('mocha');

module.exports = class extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats;
      if (process.env.RESULT_FILE) {
        writeFileSync(
          process.env.RESULT_FILE,
          JSON.stringify({ passed: passes, failed: failures, skipped: pending }),
        );
      }
    });
  }
};
