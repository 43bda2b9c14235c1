/** What a runner decides, with a host that only takes notes, and a clock that the tests move. */

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import type { LimitsInForce } from '../../src/endpoint-limits.js';
import { type Desired, EndpointRunner, type RunnerHost } from '../../src/gateway/endpoint-runner.js';
import type { HandlerProcess } from '../../src/gateway/handler-process.js';

interface FakeProcess extends HandlerProcess {
  readonly artifact: string;
  crash(): void;
}

const LIMITS: LimitsInForce = {
  memory_mb: 100,
  processes: 50,
  open_files: 50,
  timeout_ms: 1_000,
  concurrent_requests: 10,
};

describe('endpoint runner', () => {
  let notes: string[];
  let started: FakeProcess[];
  /** Decides what becomes of a start; may throw. */
  let onStart: (process: FakeProcess) => void;
  /** Waited for by every change of the route. */
  let routing: Promise<void>;
  /** Waited for by every observation of a failure. */
  let savingFailure: Promise<void>;

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    notes = [];
    started = [];
    onStart = () => undefined;
    routing = Promise.resolve();
    savingFailure = Promise.resolve();
  });
  afterEach(() => mock.timers.reset());

  const host: RunnerHost = {
    start: async (artifact) => {
      const id = started.length + 1;
      let crash = (_reason: string): void => undefined;
      const ended = new Promise<string>((resolve) => {
        crash = resolve;
      });
      const process: FakeProcess = {
        artifact,
        pid: 1000 + id,
        instance: { id, socket: '' },
        startedAt: 0,
        ended,
        crash: () => crash('it ended with exit code 1'),
        lastLines: () => 'last words',
        fail: (reason) => {
          notes.push(`fail ${id}`);
          crash(reason);
        },
        stop: async () => {
          notes.push(`stop ${id}`);
        },
      };
      started.push(process);
      onStart(process);
      return process;
    },
    route: async (handler) => {
      await routing;
      notes.push(`route ${handler.kind}${handler.kind === 'running' ? ` ${handler.instance.id}` : ''}`);
    },
    drained: async (process) => {
      notes.push(`drained ${process.instance.id}`);
    },
    observe: async ({ state, pid }) => {
      if (state === 'failed') await savingFailure;
      notes.push(`observe ${state} ${pid}`);
    },
    crashLoop: async (artifact, version, error) => {
      notes.push(`crash loop of ${artifact}, version ${version}: ${error}`);
    },
    recovered: async () => {
      notes.push('recovered');
    },
    restarted: (reason) => notes.push(`restarted ${reason}`),
    log: pino({ level: 'silent' }),
  };
  const run = (desired: Desired) => new EndpointRunner(host, desired);
  /** Lets everything happen that waits for no timer. */
  const settle = async () => {
    for (let i = 0; i < 20; i++) await turn();
  };
  const pass = async (seconds: number) => {
    for (let i = 0; i < seconds * 10; i++) {
      mock.timers.tick(100);
      await settle();
    }
  };

  /** Handlers crash as they start, until the returned function is called. */
  const breakHandlers = () => {
    onStart = (process) => process.crash();
    return () => {
      onStart = () => undefined;
    };
  };
  /** No observation of a failure is saved until the returned function is called. */
  const holdBackFailures = () => {
    let saved = (): void => undefined;
    savingFailure = new Promise((resolve) => {
      saved = resolve;
    });
    return saved;
  };
  const isObservation = (note: string) => note.startsWith('observe');
  /** The process before ends, and the new one is observed: neither waits for the other. */
  const expectSwap = (from: number, to: number) => {
    const taken = notes.splice(0);
    expect(taken.filter((note) => !isObservation(note))).to.deep.equal([
      `route running ${to}`,
      `drained ${from}`,
      `stop ${from}`,
    ]);
    expect(taken.filter(isObservation)).to.deep.equal([`observe running ${1000 + to}`]);
  };

  it('starts, swaps without a gap, and stops', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    expect(notes.splice(0)).to.deep.equal(['route starting', 'route running 1', 'observe running 1001']);
    runner.desire({ artifact: 'b', limits: LIMITS, version: 2 });
    await settle();
    expectSwap(1, 2);
    runner.desire({ artifact: null, limits: LIMITS, version: 3 });
    await settle();
    expect(notes).to.deep.equal(['route none', 'drained 2', 'stop 2', 'observe stopped null']);
    expect(runner.isIdle).to.equal(true);
  });

  it('observes a newer version of what already runs without touching it', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    runner.desire({ artifact: 'a', limits: LIMITS, version: 2 });
    await settle();
    expect(notes).to.deep.equal(['observe running 1001']);
    expect(started).to.have.length(1);
  });

  it('carries out the latest of several wishes', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    for (const [at, artifact] of ['b', 'c', 'd'].entries())
      runner.desire({ artifact, limits: LIMITS, version: at + 2 });
    await settle();
    expect(started.map(({ artifact }) => artifact)).to.deep.equal(['a', 'd']);
    expect(notes.at(-1)).to.be.oneOf(['observe running 1002', 'stop 1']);
  });

  it('starts again at once after a first crash', async () => {
    run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    started[0]?.crash();
    await settle();
    expect(notes).to.deep.equal([
      'restarted crash',
      'stop 1',
      'route starting',
      'route running 2',
      'observe running 1002',
    ]);
  });

  it('reports a crash loop once, goes on trying ever more seldom, and reports when it is over', async () => {
    const mend = breakHandlers();
    run({ artifact: 'a', limits: LIMITS, version: 1 });
    await pass(5);
    const loops = notes.filter((note) => note.startsWith('crash loop'));
    expect(loops).to.deep.equal([
      'crash loop of a, version 1: The handler crashed: it ended with exit code 1.\nIts last output:\nlast words',
    ]);
    expect(started.length).to.be.within(5, 10);
    await pass(60);
    expect(started.length).to.be.within(9, 12);
    expect(notes).not.to.include('recovered');
    mend();
    await pass(60);
    expect(notes.filter((note) => note === 'recovered')).to.have.length(1);
    expect(notes.at(-1)).to.equal('recovered');
    expect(notes.at(-2)).to.match(/^observe running \d+$/);
  });

  it('does not take a handler for stable that crashed before requests reached it', async () => {
    let reached = (): void => undefined;
    routing = new Promise((resolve) => {
      reached = resolve;
    });
    onStart = (process) => queueMicrotask(() => process.crash());
    run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    reached();
    await pass(65);
    expect(notes).not.to.include('recovered');
    expect(notes).not.to.include('observe running null');
  });

  it('saves what it sees in the order in which it saw it', async () => {
    const mend = breakHandlers();
    const saved = holdBackFailures();
    run({ artifact: 'a', limits: LIMITS, version: 1 });
    while (started.length < 5) await pass(0.1);
    mend();
    await pass(2);
    expect(started).to.have.length(6);
    await pass(10);
    saved();
    await settle();
    expect(notes.filter(isObservation)).to.deep.equal(['observe failed null', 'observe running 1006']);
    // By the time that the loop is saved it is over.
    expect(notes.at(-1)).to.equal('recovered');
    expect(notes.filter((note) => note.startsWith('crash loop'))).to.deep.equal([]);
  });

  it('does not take a handler that is about to prove itself for running before it has', async () => {
    const mend = breakHandlers();
    const saved = holdBackFailures();
    run({ artifact: 'a', limits: LIMITS, version: 1 });
    while (started.length < 5) await pass(0.1);
    mend();
    await pass(2);
    saved();
    await settle();
    expect(started).to.have.length(6);
    expect(notes.filter(isObservation)).to.deep.equal(['observe failed null']);
    expect(notes.at(-1)).to.match(/^crash loop of a, version 1: /);
  });

  it('does not take for failed what is wanted by the time that fronts know of a crash loop', async () => {
    let reached = (): void => undefined;
    onStart = (process) => {
      process.crash();
      if (started.length < 5) return;
      // Fronts know that it runs, and are slow to learn that it does not any more.
      void process.ended.then(() => {
        routing = new Promise((resolve) => {
          reached = resolve;
        });
      });
    };
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    while (started.length < 5) await pass(0.1);
    onStart = () => undefined;
    runner.desire({ artifact: 'b', limits: LIMITS, version: 2 });
    await settle();
    routing = Promise.resolve();
    reached();
    await settle();
    expect(notes.filter(isObservation)).to.deep.equal(['observe running 1006']);
  });

  it('does not take for recovered what serves only until it can be replaced', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    onStart = () => {
      throw new Error('not with so little memory');
    };
    runner.desire({ artifact: 'a', limits: { ...LIMITS, memory_mb: 16 }, version: 2 });
    await pass(15);
    expect(notes.filter((note) => note.startsWith('crash loop'))).to.have.length(1);
    expect(notes).not.to.include('recovered');
  });

  it('does not take for crashing what is wanted by the time that it has saved a crash loop', async () => {
    const mend = breakHandlers();
    const saved = holdBackFailures();
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    while (started.length < 5) await pass(0.1);
    mend();
    runner.desire({ artifact: 'b', limits: LIMITS, version: 2 });
    await settle();
    saved();
    await settle();
    expect(notes.filter((note) => note.startsWith('crash loop'))).to.deep.equal([]);
    expect(notes.filter(isObservation).at(-1)).to.equal('observe running 1006');
  });

  it('replaces a process that ran over a deadline once, however many requests did', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    for (let i = 0; i < 3; i++) runner.replace(1);
    await settle();
    runner.replace(1);
    await settle();
    expect(notes.shift()).to.equal('restarted deadline');
    expectSwap(1, 2);
  });

  it('replaces the process for other limits of it, and only for those', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    const fewer = { ...LIMITS, concurrent_requests: 5, timeout_ms: 500 };
    runner.desire({ artifact: 'a', limits: fewer, version: 2 });
    await settle();
    expect(notes.splice(0)).to.deep.equal(['observe running 1001']);
    runner.desire({ artifact: 'a', limits: { ...fewer, memory_mb: 50 }, version: 3 });
    await settle();
    expectSwap(1, 2);
  });

  it('keeps what serves when it cannot be started with other limits, and says so', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    onStart = () => {
      throw new Error('not with so little memory');
    };
    runner.desire({ artifact: 'a', limits: { ...LIMITS, memory_mb: 16 }, version: 2 });
    await pass(5);
    expect(new Set(notes)).to.deep.equal(
      new Set(['observe running 1001', 'crash loop of a, version 2: not with so little memory']),
    );
    runner.desire({ artifact: 'a', limits: LIMITS, version: 3 });
    await settle();
    expect(notes.at(-1)).to.equal('observe running 1001');
    expect(started.at(-1)?.pid).not.to.equal(undefined);
    expect(notes.some((note) => note.startsWith('stop') || note.startsWith('route'))).to.equal(false);
  });

  it('takes a process for crashed with which the connection broke, unless it is on its way out', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    runner.lost(7, 'of another instance');
    runner.lost(1, 'it closed its connection');
    await pass(1);
    expect(notes.slice(0, 3)).to.deep.equal(['fail 1', 'restarted crash', 'stop 1']);
    expect(notes.at(-1)).to.equal('observe running 1002');
    notes = [];
    runner.lost(1, 'told by another front');
    await pass(1);
    expect(notes).to.deep.equal([]);
  });

  it('keeps replacing a stuck process when its successor does not start at first', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    onStart = () => {
      onStart = () => undefined;
      throw new Error('no memory');
    };
    runner.replace(1);
    await pass(2);
    expect(notes.at(-1)).to.match(/^(observe running 1003|stop 1)$/);
    expect(notes).to.include.members(['stop 1', 'observe running 1003']);
  });

  it('keeps what runs when the next one does not start, and goes back to it when told to', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    onStart = () => {
      throw new Error('it does not start');
    };
    runner.desire({ artifact: 'b', limits: LIMITS, version: 2 });
    await settle();
    expect(notes.splice(0)).to.deep.equal(['observe failed null']);
    runner.desire({ artifact: 'a', limits: LIMITS, version: 3 });
    await settle();
    expect(notes).to.deep.equal(['observe running 1001']);
  });

  it('reports a start that fails also when it is told again what to start meanwhile', async () => {
    let fail = (_error: Error): void => undefined;
    routing = new Promise((_resolve, reject) => {
      fail = reject;
    });
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    runner.desire({ artifact: 'a', limits: LIMITS, version: 1 });
    routing = Promise.resolve();
    fail(new Error('it does not start'));
    await settle();
    expect(notes).to.include('observe failed null');
  });

  it('ends all it has started', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    runner.desire({ artifact: 'b', limits: LIMITS, version: 2 });
    await runner.stop();
    expect(notes.filter((note) => note.startsWith('stop')).length).to.equal(started.length);
  });
});
