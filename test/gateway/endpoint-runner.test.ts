/** Decisions of a runner, with a host that records calls and a mocked clock. */

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import type { HandlerProcess } from '../../src/gateway/handlers/handler-process.js';
import { EndpointRunner } from '../../src/gateway/runner/endpoint-runner.js';
import type { Beginning, DesiredState, EndpointRunnerHost } from '../../src/gateway/runner/runner-host.js';
import type { LimitsInForce } from '../../src/model/endpoint-limits.js';
import type { VersionState } from '../../src/store/observations.js';

interface FakeProcess extends HandlerProcess {
  readonly artifact: string;
  crash(): void;
}

const LIMITS: LimitsInForce = {
  memory_mb: 100,
  processes: 50,
  open_files: 50,
  timeout_ms: 1_000,
  idle_timeout_ms: 1_000,
  concurrent_requests: 10,
  idle_ms: 900_000,
  min_instances: 0,
};

/** All requests to the version of one artifact; null: nothing. */
function desired(artifact: string | null, revision: number, limits = LIMITS): DesiredState {
  return artifact === null
    ? { deployment: null, limits, environment: null, revision }
    : shared({ [artifact]: 100 }, revision, limits);
}

/** Percentages by artifact. The version of `a` is 1, that of `b` 2, and so on. */
function shared(
  percentages: Readonly<Record<string, number>>,
  revision: number,
  limits = LIMITS,
): DesiredState {
  const targets = Object.entries(percentages).map(([artifact, percent]) => ({
    version: artifact.charCodeAt(0) - 96,
    percent,
    artifact,
  }));
  const deployment = { id: JSON.stringify(targets), targets, sticky: null, request_id: 'r', confirmed: true };
  return { deployment, limits, environment: null, revision };
}

describe('endpoint runner', () => {
  let notes: string[];
  let started: FakeProcess[];
  /** Called on each start; may throw. */
  let onStart: (process: FakeProcess) => void;
  /** Awaited by every start. */
  let starting: Promise<void>;
  /** Those of the last observation. */
  let versions: readonly VersionState[];
  /** Awaited by every change of the route. */
  let routing: Promise<void>;
  /** Awaited before a process is stopped. */
  let drained: Promise<void>;
  /** Awaited by every observation of a failure. */
  let savingFailure: Promise<void>;

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    notes = [];
    started = [];
    onStart = () => undefined;
    starting = Promise.resolve();
    versions = [];
    routing = Promise.resolve();
    drained = Promise.resolve();
    savingFailure = Promise.resolve();
  });
  afterEach(() => mock.timers.reset());

  const host: EndpointRunnerHost = {
    start: async (artifact, _settings, _version, _isWoken, abandoned) => {
      const id = started.length + 1;
      let crash = (_reason: string): void => undefined;
      const ended = new Promise<string>((resolve) => {
        crash = resolve;
      });
      const process: FakeProcess = {
        artifact,
        pid: 1000 + id,
        instance: { id, socket: '', takes: 'whole' },
        startedAt: 0,
        ended,
        outputEnded: ended,
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
      abandoned.addEventListener('abort', () => notes.push(`abandoned ${id}`));
      await starting;
      return process;
    },
    route: async (serving) => {
      await routing;
      const targets = serving.kind === 'running' ? serving.targets : [];
      const shares = targets.map(({ weight, instance }) =>
        weight === 100 ? instance.id : `${instance.id}:${weight}`,
      );
      notes.push(['route', serving.kind, ...shares].join(' '));
    },
    drained: async (process) => {
      notes.push(`drained ${process.instance.id}`);
      await drained;
    },
    saveObservation: async ({ state, serving, versions: seen }) => {
      if (state === 'failed') await savingFailure;
      versions = seen;
      const pids = serving.map(({ pid }) => pid);
      notes.push(`observe ${state} ${state === 'running' ? pids : null}`);
    },
    saveCrashLoop: async ({ targets }, revision, error) => {
      notes.push(`crash loop of ${targets.map(({ artifact }) => artifact)}, revision ${revision}: ${error}`);
    },
    saveRecovery: async () => {
      notes.push('recovered');
    },
    restarted: (reason) => notes.push(`restarted ${reason}`),
    failed: () => undefined,
    asleep: () => notes.push('asleep'),
    log: pino({ level: 'silent' }),
  };
  const run = (desired: DesiredState, beginning?: Beginning, isInError?: boolean) =>
    new EndpointRunner(host, desired, beginning, isInError);
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
    const runner = run(desired('a', 1));
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

  it('starts a handler, swaps it without a gap, and stops it', async () => {
    const runner = run(desired('a', 1));
    await settle();
    expect(notes.splice(0)).to.deep.equal(['route starting', 'route running 1', 'observe running 1001']);
    runner.setDesired(desired('b', 2));
    await settle();
    expectSwap(1, 2);
    runner.setDesired(desired(null, 3));
    await settle();
    expect(notes).to.deep.equal(['route none', 'drained 2', 'stop 2', 'observe stopped null']);
  });

  it('observes a newer revision of a running handler without touching its process', async () => {
    const runner = run(desired('a', 1));
    await settle();
    notes = [];
    runner.setDesired(desired('a', 2));
    await settle();
    expect(notes).to.deep.equal(['observe running 1001']);
    expect(started).to.have.length(1);
  });

  it('applies only the latest of several desired states', async () => {
    const runner = run(desired('a', 1));
    for (const [at, artifact] of ['b', 'c', 'd'].entries()) runner.setDesired(desired(artifact, at + 2));
    await settle();
    expect(started.map(({ artifact }) => artifact)).to.deep.equal(['d']);
    expect(notes.at(-1)).to.equal('observe running 1001');
  });

  it('ends a start of a handler that is no longer desired, and does not wait for it', async () => {
    const runner = run(desired('a', 1));
    await settle();
    notes = [];
    let ready = (): void => undefined;
    starting = new Promise((resolve) => {
      ready = resolve;
    });
    runner.setDesired(desired('b', 2));
    await settle();
    expect([started.length, notes.splice(0)]).to.deep.equal([2, []]);
    // The same again is no reason to give it up.
    runner.setDesired(desired('b', 3));
    await settle();
    expect(started.length).to.equal(2);
    runner.setDesired(desired('a', 4));
    await settle();
    expect(notes.splice(0)).to.deep.equal(['abandoned 2', 'observe running 1001']);
    // It has become ready at the same moment.
    ready();
    await settle();
    expect(notes.splice(0)).to.deep.equal(['stop 2']);

    // One that fails then is no failure of what is desired.
    starting = Promise.resolve().then(() => Promise.reject(new Error('never ready')));
    runner.setDesired(desired('c', 5));
    runner.setDesired(desired('a', 6));
    await settle();
    expect(notes).to.deep.equal(['abandoned 3', 'observe running 1001']);
    await runner.stop();
  });

  it('observes which of several versions fails, and why', async () => {
    onStart = (process) => {
      if (process.artifact === 'b') throw new Error('no configuration');
    };
    const runner = run(desired('a', 1));
    await settle();
    runner.setDesired(shared({ a: 90, b: 10 }, 2));
    await settle();
    expect(versions).to.deep.equal([
      { version: 1, state: 'running', error: null },
      { version: 2, state: 'failed', error: 'no configuration' },
    ]);
    onStart = () => undefined;
    await pass(1);
    expect(versions.map(({ state }) => state)).to.deep.equal(['running', 'running']);
    // A crash loop counts until the version is stable again.
    onStart = (process) => {
      if (process.artifact === 'b') process.crash();
    };
    started.at(-1)?.crash();
    while (started.length < 8) await pass(0.1);
    expect(versions.map(({ state }) => state)).to.deep.equal(['running', 'failed']);
    expect(versions[1]?.error).to.match(/^The handler crashed/);
    onStart = () => undefined;
    await pass(60);
    expect(versions.map(({ state }) => state)).to.deep.equal(['running', 'running']);
  });

  it('restarts a handler at once after its first crash', async () => {
    run(desired('a', 1));
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
    run(desired('a', 1));
    await pass(5);
    const loops = notes.filter((note) => note.startsWith('crash loop'));
    expect(loops).to.deep.equal([
      'crash loop of a, revision 1: The handler crashed: it ended with exit code 1.\nIts last output:\nlast line',
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
    run(desired('a', 1));
    await settle();
    reached();
    await pass(65);
    expect(notes).not.to.include('recovered');
    expect(notes).not.to.include('observe running null');
  });

  it('saves observations of an endpoint in order', async () => {
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
    expect(notes.at(-1)).to.match(/^crash loop of a, revision 1: /);
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
    const runner = run(desired('a', 1));
    while (started.length < 5) await pass(0.1);
    onStart = () => undefined;
    runner.setDesired(desired('b', 2));
    await settle();
    routing = Promise.resolve();
    reached();
    await settle();
    expect(notes.filter(isObservation)).to.deep.equal(['observe running 1006']);
  });

  it('reports no recovery while an outdated process keeps serving', async () => {
    const runner = run(desired('a', 1));
    await settle();
    onStart = () => {
      throw new Error('not with so little memory');
    };
    runner.setDesired(desired('a', 2, { ...LIMITS, memory_mb: 16 }));
    await pass(15);
    expect(notes.filter((note) => note.startsWith('crash loop'))).to.have.length(1);
    expect(notes).not.to.include('recovered');
  });

  it('does not report a crash loop for a new desired state', async () => {
    const { runner, repair, saved } = await crashFiveTimes();
    repair();
    runner.setDesired(desired('b', 2));
    await settle();
    saved();
    await settle();
    expect(notes.filter((note) => note.startsWith('crash loop'))).to.deep.equal([]);
    expect(notes.filter(isObservation).at(-1)).to.equal('observe running 1006');
  });

  it('replaces the process of a handler once when several requests exceed their deadlines', async () => {
    const runner = run(desired('a', 1));
    await settle();
    notes = [];
    for (let i = 0; i < 3; i++) runner.replace(1);
    await settle();
    runner.replace(1);
    await settle();
    expect(notes.shift()).to.equal('restarted deadline');
    expectSwap(1, 2);
  });

  it('replaces the process of a handler only when limits of the process change', async () => {
    const runner = run(desired('a', 1));
    await settle();
    notes = [];
    const fewer = { ...LIMITS, concurrent_requests: 5, timeout_ms: 500 };
    runner.setDesired(desired('a', 2, fewer));
    await settle();
    expect(notes.splice(0)).to.deep.equal(['observe running 1001']);
    runner.setDesired(desired('a', 3, { ...fewer, memory_mb: 50 }));
    await settle();
    expectSwap(1, 2);
  });

  it('replaces the process of a handler when its environment changes', async () => {
    const runner = run(desired('a', 1));
    await settle();
    notes = [];
    runner.setDesired({ ...desired('a', 2), environment: 'other' });
    await settle();
    expectSwap(1, 2);
  });

  it('keeps the running handler when a start with other limits fails, and reports that', async () => {
    const runner = run(desired('a', 1));
    await settle();
    notes = [];
    onStart = () => {
      throw new Error('not with so little memory');
    };
    runner.setDesired(desired('a', 2, { ...LIMITS, memory_mb: 16 }));
    await pass(5);
    expect(new Set(notes)).to.deep.equal(
      new Set(['observe running 1001', 'crash loop of a, revision 2: not with so little memory']),
    );
    runner.setDesired(desired('a', 3));
    await settle();
    expect(notes.at(-1)).to.equal('observe running 1001');
    expect(started.at(-1)?.pid).not.to.equal(undefined);
    expect(notes.some((note) => note.startsWith('stop') || note.startsWith('route'))).to.equal(false);
  });

  it('treats a lost connection of a handler as a crash, but not one of another or an ended process', async () => {
    const runner = run(desired('a', 1));
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
    const runner = run(desired('a', 1));
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

  it('keeps the running handler when the next one does not start, and returns to it on request', async () => {
    const runner = run(desired('a', 1));
    await settle();
    notes = [];
    onStart = () => {
      throw new Error('it does not start');
    };
    runner.setDesired(desired('b', 2));
    await settle();
    expect(notes.splice(0)).to.deep.equal(['observe failed null']);
    runner.setDesired(desired('a', 3));
    await settle();
    expect(notes).to.deep.equal(['observe running 1001']);
  });

  it('reports a failed start of a handler even when the desired state is set again meanwhile', async () => {
    let fail = (_error: Error): void => undefined;
    routing = new Promise((_resolve, reject) => {
      fail = reject;
    });
    const runner = run(desired('a', 1));
    await settle();
    runner.setDesired(desired('a', 1));
    routing = Promise.resolve();
    fail(new Error('it does not start'));
    await settle();
    expect(notes).to.include('observe failed null');
  });

  it('stops all processes of an endpoint that it has started', async () => {
    const runner = run(desired('a', 1));
    await settle();
    runner.setDesired(desired('b', 2));
    await runner.stop();
    expect(notes.filter((note) => note.startsWith('stop')).length).to.equal(started.length);
  });

  describe('endpoint runner that sleeps', () => {
    const asleep = ['route asleep', 'drained 1', 'stop 1', 'asleep'];
    /** One that has run for a while. */
    const runAwhile = async () => {
      const runner = run(desired('a', 1));
      await settle();
      notes = [];
      return runner;
    };

    it('ends the process of a sleeping endpoint, and starts another one when it is woken', async () => {
      const runner = await runAwhile();
      expect(runner.sleep()).to.equal(true);
      await settle();
      expect(notes.splice(0)).to.deep.equal(asleep);
      runner.wake();
      await settle();
      expect(notes).to.deep.equal(['route running 2', 'observe running 1002']);
      expect(runner.sleep()).to.equal(true);
    });

    it('wakes an endpoint that is falling asleep without waiting for requests in the old process', async () => {
      const runner = await runAwhile();
      let reached = (): void => undefined;
      routing = new Promise((resolve) => {
        reached = resolve;
      });
      drained = new Promise(() => undefined);
      runner.sleep();
      await settle();
      runner.wake();
      routing = Promise.resolve();
      reached();
      await settle();
      expect(notes).to.deep.equal(['route asleep', 'drained 1', 'route running 2', 'observe running 1002']);
    });

    it('reports an endpoint as asleep when its last process has ended', async () => {
      const runner = await runAwhile();
      let finished = (): void => undefined;
      drained = new Promise((resolve) => {
        finished = resolve;
      });
      runner.sleep();
      await settle();
      expect(notes).to.deep.equal(['route asleep', 'drained 1']);
      finished();
      await settle();
      expect(notes).to.deep.equal(asleep);
    });

    it('wakes an endpoint for a new deployment or limits that keep it awake, not for other changes', async () => {
      const runner = await runAwhile();
      runner.sleep();
      await settle();
      notes = [];
      runner.setDesired(desired('a', 2, { ...LIMITS, memory_mb: 50 }));
      await settle();
      expect(notes.splice(0).filter((note) => note !== 'asleep')).to.deep.equal([]);
      runner.setDesired(desired('a', 3, { ...LIMITS, min_instances: 1 }));
      await settle();
      expect(notes.splice(0)).to.deep.equal(['route running 2', 'observe running 1002']);
      expect(runner.sleep()).to.equal(false);
      runner.setDesired(desired('a', 4));
      await settle();
      expect(runner.sleep()).to.equal(true);
      await settle();
      notes = [];
      runner.setDesired(desired('b', 5));
      await settle();
      expect(notes).to.deep.equal(['route running 3', 'observe running 1003']);
    });

    it('stops an endpoint that is asleep', async () => {
      const runner = await runAwhile();
      runner.sleep();
      await settle();
      notes = [];
      runner.setDesired(desired(null, 2));
      await settle();
      expect(notes).to.deep.equal(['route none', 'observe stopped null']);
    });

    it('puts no endpoint to sleep while it changes, nor before it is stable after a crash', async () => {
      const runner = run(desired('a', 1));
      expect(runner.sleep()).to.equal(false);
      await settle();
      started[0]?.crash();
      await settle();
      expect(runner.sleep()).to.equal(false);
      await pass(11);
      expect(runner.sleep()).to.equal(true);
    });

    it('starts the version that slept when a new deployment does not start and is withdrawn', async () => {
      onStart = ({ artifact }) => {
        if (artifact === 'b') throw new Error('it does not start');
      };
      const runner = run(desired('b', 2), 'asleep');
      await settle();
      expect(notes.splice(0)).to.deep.equal(['observe failed null']);
      runner.setDesired(desired('a', 3));
      await settle();
      expect(notes).to.deep.equal(['route running 2', 'observe running 1002']);
    });

    it('refuses requests when a new deployment fails again, or a woken handler does not start', async () => {
      onStart = () => {
        throw new Error('it does not start');
      };
      run(desired('b', 2), 'asleep');
      await pass(1);
      expect(notes.splice(0).slice(0, 3)).to.deep.equal([
        'observe failed null',
        'route none',
        'observe failed null',
      ]);
      mock.timers.reset();
      mock.timers.enable({ apis: ['setTimeout'] });
      run(desired('a', 1), 'woken');
      await settle();
      expect(notes.slice(0, 2)).to.deep.equal(['route none', 'observe failed null']);
    });

    it('reports the end of a crash loop that began in an earlier gateway', async () => {
      const runner = run(desired('a', 1), 'asleep', true);
      await settle();
      expect(runner.sleep(), 'it is not known to be stable').to.equal(false);
      await pass(11);
      expect(notes.at(-1)).to.equal('recovered');
      expect(runner.sleep()).to.equal(true);
    });

    it('reports the end of a crash loop that other limits have ended', async () => {
      const repair = crashHandlers();
      const runner = run(desired('a', 1));
      await pass(5);
      repair();
      runner.setDesired(desired('a', 2, { ...LIMITS, memory_mb: 50 }));
      await settle();
      expect(runner.sleep()).to.equal(false);
      await pass(11);
      expect(notes.at(-1)).to.equal('recovered');
      expect(runner.sleep()).to.equal(true);
    });
  });

  describe('endpoint runner with two versions', () => {
    it('starts a second version before any request goes to it, and lets the first one finish at the end', async () => {
      const runner = run(desired('a', 1));
      await settle();
      notes = [];
      runner.setDesired(shared({ a: 90, b: 10 }, 2));
      await settle();
      expect(notes.splice(0)).to.deep.equal(['route running 1:90 2:10', 'observe running 1001,1002']);
      runner.setDesired(shared({ b: 60, a: 40 }, 3));
      await settle();
      expect(notes.splice(0)).to.deep.equal(['route running 1:40 2:60', 'observe running 1002,1001']);
      runner.setDesired(desired('b', 4));
      await settle();
      expect(notes.filter((note) => !isObservation(note))).to.deep.equal([
        'route running 2',
        'drained 1',
        'stop 1',
      ]);
      expect(started).to.have.length(2);
    });

    it('restarts the version that crashes without touching the other one', async () => {
      run(shared({ a: 90, b: 10 }, 1));
      await settle();
      notes = [];
      started[1]?.crash();
      await settle();
      expect(notes).to.deep.equal([
        'restarted crash',
        'stop 2',
        'route running 1:90 3:10',
        'observe running 1001,1003',
      ]);
    });

    it('keeps the version that serves when the second one does not start, and ends no process', async () => {
      const runner = run(desired('a', 1));
      await settle();
      notes = [];
      onStart = () => {
        throw new Error('it does not start');
      };
      runner.setDesired(shared({ a: 90, b: 10 }, 2));
      await settle();
      expect(notes.splice(0)).to.deep.equal(['observe failed null']);
      runner.setDesired(desired('a', 3));
      await settle();
      expect(notes).to.deep.equal(['observe running 1001']);
    });

    it('stops both versions of an endpoint', async () => {
      const runner = run(shared({ a: 50, b: 50 }, 1));
      await settle();
      notes = [];
      runner.setDesired(desired(null, 2));
      await settle();
      expect(notes[0]).to.equal('route none');
      expect(notes).to.include.members(['drained 1', 'drained 2', 'stop 1', 'stop 2']);
      expect(notes.at(-1)).to.equal('observe stopped null');
    });
  });
});
