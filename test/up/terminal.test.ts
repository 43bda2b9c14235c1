/** What untrusted code can make `npm run up` print. */
import { expect } from 'chai';
import { WORKER_LOG } from '../../src/model/preparation.js';
import { parseLogLine, printable } from '../../src/up/log-line.js';
import { sentence } from '../../src/up/terminal.js';

describe('output on a terminal', () => {
  it('prints each message as one line of bounded length without escape sequences', () => {
    const message = `\u001b]0;title\u0007\u009b2J\u202e${'x'.repeat(1000)}\nERROR (web) forged`;
    const entry = parseLogLine(
      JSON.stringify({ level: 40, time: 0, name: '\u001b[1mgateway', msg: message }),
    );
    expect(entry && sentence(entry)).to.match(/^\d\d:\d\d:\d\d warning \(\[1mgateway\) \]0;title2Jx{290}$/);
    expect(printable('a\r\u001b[2Kb\tc\nd')).to.equal('a[2Kb\tc\nd');
  });

  it('names the log file where messages for clients name the log', () => {
    const entry = {
      level: 40,
      time: 0,
      name: 'worker',
      message: `It failed; ${WORKER_LOG} has the details.`,
    };
    expect(sentence(entry, '/data/log/up.log')).to.match(
      /It failed; \/data\/log\/up\.log has the details\.$/,
    );
    expect(sentence(entry)).to.include(WORKER_LOG);
  });
});
