/** Which handlers are put to sleep, and when the front is asked about them. */
import { expect } from 'chai';
import { IdleClock } from '../../src/gateway/runner/idle-clock.js';
import { IdleHandlers } from '../../src/gateway/sleep/idle-handlers.js';
import type { Memory } from '../../src/gateway/sleep/memory-pressure.js';
import { createTestLog } from '../support/log.js';

const PLENTY: Memory = { total: 1_000, available: 900 };

describe('idle handlers', () => {
  let slept: string[];
  let asked: string[][];
  /** What the front says. */
  let idleMs: Record<string, number>;
  let memory: readonly Memory[];
  let runners: Map<string, { idle: IdleClock; idleLimitMs: number; sleep(): boolean }>;
  let idle: IdleHandlers;

  beforeEach(() => {
    slept = [];
    asked = [];
    idleMs = {};
    memory = [PLENTY];
    runners = new Map();
    idle = new IdleHandlers({
      runners,
      idleMs: async (ids) => {
        asked.push([...ids]);
        return ids.map((id) => idleMs[id] ?? 0);
      },
      readMemory: async () => memory,
      bytesOf: () => 10,
      log: createTestLog().log,
    });
  });
  afterEach(() => idle.stop());

  /** Adds a handler that the gateway knows to have been used so long ago; the front may know better. */
  const add = (id: string, idleLimitMs: number, front: number, isHeld = false) => {
    const clock = new IdleClock(isHeld);
    const sleep = () => slept.push(id) > 0;
    runners.set(id, { idle: clock, idleLimitMs, sleep });
    idleMs[id] = front;
    return clock;
  };
  /** Lets so much time have passed since a handler began to serve, as far as its clock knows. */
  const age = (clock: IdleClock, ms: number) => Object.assign(clock, { at: () => ms, used: () => undefined });

  it('puts handlers to sleep after their idle time, and asks the front only about those', async () => {
    add('new', 60_000, 100_000);
    age(add('old', 50, 100), 100);
    add('never', Number.POSITIVE_INFINITY, 100_000);
    await idle.check();
    expect(asked).to.deep.equal([['old']]);
    expect(slept).to.deep.equal(['old']);
  });

  it('keeps a handler awake when the front has had a request for it meanwhile', async () => {
    const clock = add('used', 0.001, 0);
    clock.used(performance.now() - 1_000);
    await new Promise((resolve) => setTimeout(resolve, 5));
    await idle.check();
    expect(asked).to.deep.equal([['used']]);
    expect(clock.at(performance.now())).to.be.lessThan(1_000);
  });

  it('counts no idle time of a handler before it is observed, nor while it is held', () => {
    const clock = new IdleClock(true);
    expect(clock.at(performance.now() + 100_000)).to.equal(0);
    clock.observed();
    expect(clock.at(performance.now() + 100)).to.equal(0);
    expect(clock.at(performance.now() + 100_000)).to.be.greaterThan(90_000);
    clock.hold();
    expect(clock.at(performance.now() + 100_000)).to.equal(0);
  });

  it('puts handlers to sleep earlier when memory is scarce, the longest idle first', async () => {
    for (const [id, ms] of [
      ['short', 2_000],
      ['longest', 50_000],
      ['longer', 40_000],
    ] as const)
      age(add(id, 60_000, ms), ms);
    age(add('kept', Number.POSITIVE_INFINITY, 90_000), 90_000);
    await idle.checkMemory();
    expect([asked, slept]).to.deep.equal([[], []]);
    memory = [PLENTY, { total: 200, available: 10 }];
    await idle.checkMemory();
    expect(slept).to.deep.equal(['longest', 'longer']);
  });
});
