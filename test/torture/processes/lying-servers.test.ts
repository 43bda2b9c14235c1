/** Backends that lie: only calls of their own service fail, which says something true, and nothing is left of it. */

import { ZERO_LIES } from '../../support/lies/any-protocol.js';
import { type Attack, startAttack } from '../../support/lies/attack.js';
import { FILE_SERVER_LIES } from '../../support/lies/file-server-lies.js';
import { MONGODB_LIES } from '../../support/lies/mongodb.js';
import { OTHER_LIES } from '../../support/lies/others.js';
import { POSTGRES_LIES } from '../../support/lies/postgres.js';
import { REDIS_LIES } from '../../support/lies/redis.js';

const LIES = [
  ...POSTGRES_LIES,
  ...REDIS_LIES,
  ...MONGODB_LIES,
  ...OTHER_LIES,
  ...FILE_SERVER_LIES,
  ...ZERO_LIES,
];

describe('backends that lie', function () {
  this.timeout(180_000);
  let attack: Attack;
  before(async () => {
    attack = await startAttack(LIES);
  });
  after(() => attack?.close());

  describe('calls of their services', () => {
    for (const lie of LIES)
      it(`fails service calls with a reason on a lying backend: ${lie.name}`, () => attack.outcome(lie));

    it('disturbs no other service while backends lie, and leaves no process, socket or memory behind', () =>
      attack.wasUnnoticed());
  });
});
