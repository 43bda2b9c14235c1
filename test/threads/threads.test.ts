/** Threads for long work of several owners. */
import { expect } from 'chai';
import { AppError } from '../../src/errors.js';
import { Threads } from '../../src/threads/threads.js';

/** Lines that no other text has, so that a comparison takes its whole time. */
const lines = (name: string) => Array.from({ length: 20_000 }, (_, at) => `${name} ${at}\n`).join('');
const LONG = {
  ...{ file: 'handler.rs', names: ['old', 'new'] as const, timeoutMs: 200 },
  ...{ before: lines('old'), after: lines('new') },
};
const SHORT = { ...LONG, before: 'a\n', after: 'b\n' };
const WORKS = 12;

describe('threads for long work', () => {
  let threads: Threads;
  beforeEach(() => {
    threads = new Threads();
  });
  afterEach(() => threads.close());

  it('a comparison of an owner is made before most of those that another has asked for before', async () => {
    const ended: string[] = [];
    const compare = async (owner: string, input: typeof LONG) => {
      const patch = await threads.run(owner, 'patch', input);
      ended.push(owner);
      return patch;
    };
    const others = Array.from({ length: WORKS }, () => compare('greedy', LONG));
    expect(await compare('modest', SHORT)).to.include('+b');
    expect(ended.length).to.be.below(WORKS / 2);
    await Promise.all(others);
  });

  it('gives up what takes too long, and does what comes next', async () => {
    const impatient = new Threads(100);
    try {
      const endless = impatient.run('greedy', 'patch', { ...LONG, timeoutMs: 600_000 });
      const outcome = await endless.catch((thrown: unknown) => thrown);
      expect(outcome).to.be.instanceOf(AppError).and.include({ code: 'busy' });
      expect((outcome as AppError).message).to.match(
        /takes longer than 0\.1 s to compute this; it was given up/,
      );
    } finally {
      await impatient.close();
    }
    expect(await threads.run('greedy', 'patch', SHORT)).to.include('+b');
  });

  it('refuses an owner who has too many comparisons waiting, and nobody else', async () => {
    const all = Array.from({ length: 90 }, () =>
      threads.run('greedy', 'patch', SHORT).then(
        () => 'made',
        (thrown: unknown) => (thrown instanceof AppError ? thrown.code : 'failed'),
      ),
    );
    expect(await threads.run('modest', 'patch', SHORT)).to.include('+b');
    const outcomes = await Promise.all(all);
    expect(new Set(outcomes)).to.deep.equal(new Set(['made', 'busy']));
    expect(outcomes.filter((outcome) => outcome === 'made')).to.have.length.within(64, 70);
  });
});
