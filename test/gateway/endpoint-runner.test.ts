/** Decisions of a runner, with a host that records calls and a mocked clock. */

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import {
  type DesiredState,
  EndpointRunner,
  type EndpointRunnerHost,
} from '../../src/gateway/endpoint-runner.js';
import type { HandlerProcess } from '../../src/gateway/handler-process.js';
import type { LimitsInForce } from '../../src/model/endpoint-limits.js';

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
  /** Called on each start; may throw. */
  let onStart: (process: FakeProcess) => void;
  /** Awaited by every change of the route. */
  let routing: Promise<void>;
  /** Awaited by every observation of a failure. */
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

  const host: EndpointRunnerHost = {
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
        lastLines: () => 'last line',
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
    route: async (serving) => {
      await routing;
      const targets = serving.kind === 'running' ? serving.targets : [];
      notes.push(['route', serving.kind, ...targets.map(({ instance }) => instance.id)].join(' '));
    },
    drained: async (process) => {
      notes.push(`drained ${process.instance.id}`);
    },
    saveObservation: async ({ state, pid }) => {
      if (state === 'failed') await savingFailure;
      notes.push(`observe ${state} ${pid}`);
    },
    saveCrashLoop: async (artifact, version, error) => {
      notes.push(`crash loop of ${artifact}, version ${version}: ${error}`);
    },
    saveRecovery: async () => {
      notes.push('recovered');
    },
    restarted: (reason) => notes.push(`restarted ${reason}`),
    log: pino({ level: 'silent' }),
  };
  const run = (desired: DesiredState) => new EndpointRunner(host, desired);
  /** Runs all callbacks that do not wait for a timer. */
  const settle = async () => {
    for (let i = 0; i < 20; i++) await turn();
  };
  const pass = async (seconds: number) => {
    for (let i = 0; i < seconds * 10; i++) {
      mock.timers.tick(100);
      await settle();
    }
  };

  /** Makes handlers crash at the start until the returned function is called. */
  const crashHandlers = () => {
    onStart = (process) => process.crash();
    return () => {
      onStart = () => undefined;
    };
  };
  /** Blocks saving observations of failures until the returned function is called. */
  const blockFailures = () => {
    let saved = (): void => undefined;
    savingFailure = new Promise((resolve) => {
      saved = resolve;
    });
    return saved;
  };
  /** Causes a crash loop whose observation is not saved yet. */
  const crashFiveTimes = async () => {
    const [repair, saved] = [crashHandlers(), blockFailures()];
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    while (started.length < 5) await pass(0.1);
    return { runner, repair, saved };
  };
  const isObservation = (note: string) => note.startsWith('observe');
  /** Stopping the old process and observing the new one happen concurrently. */
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
    runner.setDesired({ artifact: 'b', limits: LIMITS, version: 2 });
    await settle();
    expectSwap(1, 2);
    runner.setDesired({ artifact: null, limits: LIMITS, version: 3 });
    await settle();
    expect(notes).to.deep.equal(['route none', 'drained 2', 'stop 2', 'observe stopped null']);
  });

  it('observes a newer version of what already runs without touching it', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    runner.setDesired({ artifact: 'a', limits: LIMITS, version: 2 });
    await settle();
    expect(notes).to.deep.equal(['observe running 1001']);
    expect(started).to.have.length(1);
  });

  it('applies the latest of several desired states', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    for (const [at, artifact] of ['b', 'c', 'd'].entries())
      runner.setDesired({ artifact, limits: LIMITS, version: at + 2 });
    await settle();
    expect(started.map(({ artifact }) => artifact)).to.deep.equal(['a', 'd']);
    expect(notes.at(-1)).to.be.oneOf(['observe running 1002', 'stop 1']);
  });

  it('restarts at once after a first crash', async () => {
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

  it('reports a crash loop once, retries with backoff, and reports the recovery', async () => {
    const repair = crashHandlers();
    run({ artifact: 'a', limits: LIMITS, version: 1 });
    await pass(5);
    const loops = notes.filter((note) => note.startsWith('crash loop'));
    expect(loops).to.deep.equal([
      'crash loop of a, version 1: The handler crashed: it ended with exit code 1.\nIts last output:\nlast line',
    ]);
    expect(started.length).to.be.within(5, 10);
    await pass(60);
    expect(started.length).to.be.within(9, 12);
    expect(notes).not.to.include('recovered');
    repair();
    await pass(60);
    expect(notes.filter((note) => note === 'recovered')).to.have.length(1);
    expect(notes.at(-1)).to.equal('recovered');
    expect(notes.at(-2)).to.match(/^observe running \d+$/);
  });

  it('does not treat a handler as stable that crashed before requests reached it', async () => {
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

  it('saves observations in order', async () => {
    const { repair, saved } = await crashFiveTimes();
    repair();
    await pass(2);
    expect(started).to.have.length(6);
    await pass(10);
    saved();
    await settle();
    expect(notes.filter(isObservation)).to.deep.equal(['observe failed null', 'observe running 1006']);
    // The crash loop has ended before it is saved.
    expect(notes.at(-1)).to.equal('recovered');
    expect(notes.filter((note) => note.startsWith('crash loop'))).to.deep.equal([]);
  });

  it('does not observe a handler as running during its stability period', async () => {
    const { repair, saved } = await crashFiveTimes();
    repair();
    await pass(2);
    saved();
    await settle();
    expect(started).to.have.length(6);
    expect(notes.filter(isObservation)).to.deep.equal(['observe failed null']);
    expect(notes.at(-1)).to.match(/^crash loop of a, version 1: /);
  });

  it('does not observe a new desired state as failed because of an earlier crash loop', async () => {
    let reached = (): void => undefined;
    onStart = (process) => {
      process.crash();
      if (started.length < 5) return;
      // Routing to the handler succeeds, and removing the route is slow.
      void process.ended.then(() => {
        routing = new Promise((resolve) => {
          reached = resolve;
        });
      });
    };
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    while (started.length < 5) await pass(0.1);
    onStart = () => undefined;
    runner.setDesired({ artifact: 'b', limits: LIMITS, version: 2 });
    await settle();
    routing = Promise.resolve();
    reached();
    await settle();
    expect(notes.filter(isObservation)).to.deep.equal(['observe running 1006']);
  });

  it('does not report recovery while an outdated process keeps serving', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    onStart = () => {
      throw new Error('not with so little memory');
    };
    runner.setDesired({ artifact: 'a', limits: { ...LIMITS, memory_mb: 16 }, version: 2 });
    await pass(15);
    expect(notes.filter((note) => note.startsWith('crash loop'))).to.have.length(1);
    expect(notes).not.to.include('recovered');
  });

  it('does not report a crash loop for a new desired state', async () => {
    const { runner, repair, saved } = await crashFiveTimes();
    repair();
    runner.setDesired({ artifact: 'b', limits: LIMITS, version: 2 });
    await settle();
    saved();
    await settle();
    expect(notes.filter((note) => note.startsWith('crash loop'))).to.deep.equal([]);
    expect(notes.filter(isObservation).at(-1)).to.equal('observe running 1006');
  });

  it('replaces a process once when several requests exceed their deadlines', async () => {
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

  it('replaces the process only when limits of the process change', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    const fewer = { ...LIMITS, concurrent_requests: 5, timeout_ms: 500 };
    runner.setDesired({ artifact: 'a', limits: fewer, version: 2 });
    await settle();
    expect(notes.splice(0)).to.deep.equal(['observe running 1001']);
    runner.setDesired({ artifact: 'a', limits: { ...fewer, memory_mb: 50 }, version: 3 });
    await settle();
    expectSwap(1, 2);
  });

  it('keeps the running process when a start with other limits fails, and reports it', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    onStart = () => {
      throw new Error('not with so little memory');
    };
    runner.setDesired({ artifact: 'a', limits: { ...LIMITS, memory_mb: 16 }, version: 2 });
    await pass(5);
    expect(new Set(notes)).to.deep.equal(
      new Set(['observe running 1001', 'crash loop of a, version 2: not with so little memory']),
    );
    runner.setDesired({ artifact: 'a', limits: LIMITS, version: 3 });
    await settle();
    expect(notes.at(-1)).to.equal('observe running 1001');
    expect(started.at(-1)?.pid).not.to.equal(undefined);
    expect(notes.some((note) => note.startsWith('stop') || note.startsWith('route'))).to.equal(false);
  });

  it('treats a lost connection as a crash, unless the process is being stopped', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    runner.connectionLost(7, 'of another instance');
    runner.connectionLost(1, 'it closed its connection');
    await pass(1);
    expect(notes.slice(0, 3)).to.deep.equal(['fail 1', 'restarted crash', 'stop 1']);
    expect(notes.at(-1)).to.equal('observe running 1002');
    notes = [];
    runner.connectionLost(1, 'reported again');
    await pass(1);
    expect(notes).to.deep.equal([]);
  });

  it('retries the replacement of a process past its deadline when the first start fails', async () => {
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

  it('keeps the running process when the next one does not start, and returns to it on request', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    notes = [];
    onStart = () => {
      throw new Error('it does not start');
    };
    runner.setDesired({ artifact: 'b', limits: LIMITS, version: 2 });
    await settle();
    expect(notes.splice(0)).to.deep.equal(['observe failed null']);
    runner.setDesired({ artifact: 'a', limits: LIMITS, version: 3 });
    await settle();
    expect(notes).to.deep.equal(['observe running 1001']);
  });

  it('reports a failed start also when the desired state is set again meanwhile', async () => {
    let fail = (_error: Error): void => undefined;
    routing = new Promise((_resolve, reject) => {
      fail = reject;
    });
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    runner.setDesired({ artifact: 'a', limits: LIMITS, version: 1 });
    routing = Promise.resolve();
    fail(new Error('it does not start'));
    await settle();
    expect(notes).to.include('observe failed null');
  });

  it('stops all processes that it has started', async () => {
    const runner = run({ artifact: 'a', limits: LIMITS, version: 1 });
    await settle();
    runner.setDesired({ artifact: 'b', limits: LIMITS, version: 2 });
    await runner.stop();
    expect(notes.filter((note) => note.startsWith('stop')).length).to.equal(started.length);
  });
});
