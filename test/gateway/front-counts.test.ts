/** Counts of requests that go from one process of the front to the next; with real processes. */
import { expect } from 'chai';
import { FrontCounts } from '../../src/gateway/front/front-counts.js';
import { FrontProcess } from '../../src/gateway/front/front-process.js';
import { openPublicSocket, type PublicSocket } from '../../src/gateway/front/public-socket.js';

const SETTINGS = {
  threads: 1,
  bodyLimit: 1_000,
  memoryBytes: 1_000_000,
  policyMemoryBytes: 1_000_000,
  connectionsLimit: 10,
  headTimeoutMs: 1_000,
  idleTimeoutMs: 1_000,
  stallTimeoutMs: 1_000,
  minBytesPerSecond: 1,
  streamDrainMs: 1_000,
  trustedProxies: [],
  logsRequests: false,
  logRequestsPerSecond: 1,
  figuresEverySeconds: 5,
  sharesRates: false,
  rateSeed: 'seed',
  traces: null,
  redirectPort: null,
  strictTransportSeconds: 0,
};
const RULE = { rule: 'limit', key: '0123456789abcdef0123456789abcdef', requests: 3, windowMs: 3_600_000 };

describe('the counts of requests', () => {
  let socket: PublicSocket;
  let counts: FrontCounts;
  let started: FrontProcess[];
  beforeEach(async () => {
    socket = await openPublicSocket('127.0.0.1', 0);
    counts = new FrontCounts();
    started = [];
  });
  afterEach(async () => {
    for (const process of started) process.kill();
    await Promise.all(started.map(({ ended }) => ended));
    socket.close();
  });
  const start = async () => {
    const process = new FrontProcess({ plain: socket, secure: undefined }, SETTINGS, () => undefined);
    started.push(process);
    await process.request({ type: 'apply', upserts: [], removals: [], policies: {} });
    return process;
  };
  const serving = async () => {
    const process = await start();
    await counts.moveTo(process);
    await counts.serves(process);
    return process;
  };
  const kill = async (process: FrontProcess, hasServed: boolean) => {
    process.kill();
    await process.ended;
    counts.ended(process, hasServed);
  };
  /** Takes one; how many were taken with it, or null. */
  const take = async () => (await counts.take([RULE]))?.[0]?.taken ?? null;

  it('hands the counts of requests to each process that takes over, even to several at a time', async () => {
    await serving();
    expect(await take()).to.equal(1);
    const [second, third] = [await start(), await start()];
    const moved = [counts.moveTo(second), counts.moveTo(third)];
    const taken = await Promise.all([take(), take(), take()]);
    await Promise.all(moved);
    expect(taken).to.deep.equal([2, 3, 3]);
    expect((await counts.take([RULE, RULE]))?.map((counted) => counted?.isAdmitted)).to.deep.equal([false]);
  });

  it('recovers the counts of requests from a process that never serves', async () => {
    await serving();
    expect(await take()).to.equal(1);
    const fails = await start();
    await counts.moveTo(fails);
    await kill(fails, false);
    expect(await take()).to.equal(2);
  });

  for (const order of [
    [0, 1],
    [1, 0],
  ])
    it(`recovers the counts of requests from two processes that never serve, ending in order ${order}`, async () => {
      await serving();
      expect(await take()).to.equal(1);
      const fail = [await start(), await start()];
      const moved = fail.map((process) => counts.moveTo(process));
      for (const at of order) await kill(fail[at] ?? expect.fail('none'), false);
      await Promise.all(moved);
      expect(await take()).to.equal(2);
    });

  it('keeps the counts of the process that serves when another one, which was about to, ends', async () => {
    await serving();
    expect(await take()).to.equal(1);
    const [slow, fast] = [await start(), await start()];
    await counts.moveTo(fast);
    expect(await take()).to.equal(2);
    await counts.moveTo(slow);
    await counts.serves(fast);
    await kill(slow, true);
    expect(await take()).to.equal(3);
  });

  it('begins the counts of requests anew when the process that counts is killed', async () => {
    const first = await serving();
    expect(await take()).to.equal(1);
    await kill(first, true);
    expect(await take()).to.equal(null);
    await serving();
    expect(await take()).to.equal(1);
  });

  it('begins the counts of requests anew when the process that counts hangs', async () => {
    const hangs = await serving();
    expect(await take()).to.equal(1);
    process.kill(hangs.pid ?? 0, 'SIGSTOP');
    await serving();
    expect(await take()).to.equal(1);
  });
});
