/** More servers that lie, which take longer: each length of their messages, one byte a second, TLS that never ends. */
import { SLOW_LIES, TLS_LIES } from '../../support/lies/any-protocol.js';
import { type Attack, startAttack } from '../../support/lies/attack.js';
import { LENGTH_LIES } from '../../support/lies/lengths.js';

// Slow ones wait while others work.
const LIES = [...SLOW_LIES, ...TLS_LIES, ...LENGTH_LIES];

describe('backends that lie about lengths, or take their time', function () {
  this.timeout(600_000);
  let attack: Attack;
  before(async () => {
    attack = await startAttack(LIES);
  });
  after(() => attack?.close());

  describe('calls and tests of services whose backends lie', () => {
    for (const lie of LIES)
      it(`calls of a lying backend fail with a reason, or pass: ${lie.name}`, () => attack.outcome(lie));

    it('other services do not notice backends that lie about lengths, of which nothing is left', () =>
      attack.wasUnnoticed());
  });
});
