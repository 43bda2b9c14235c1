import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { AppError } from '../../src/errors.js';
import {
  buildJobId,
  type CompileJob,
  compileJob,
  type HandlerJob,
  handlerJobId,
  type ImportJob,
} from '../../src/queues/jobs.js';
import { type Consumer, consume, openQueues, type Queues } from '../../src/queues/queues.js';
import { eventually } from '../support/eventually.js';
import { createTestLog, type TestLog } from '../support/log.js';
import { freePort } from '../support/ports.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { startProxy } from '../support/tcp-proxy.js';

describe('job queues in PostgreSQL that cannot be reached at first', function () {
  this.timeout(180_000);

  it('queues do their jobs once PostgreSQL can be reached, and leave their process time for other work until then', async () => {
    const database = await createDatabase();
    const proxy = await startProxy(database.url);
    await proxy.down();
    const location = { DATABASE_URL: proxy.url, REDIS_URL: undefined };
    const { log } = createTestLog();
    const done: string[] = [];
    const work = async ({ data }: { data: CompileJob }) => void done.push(data.buildId);
    const consumer = consume(location, 'compile', work, 2, log);
    const queues = openQueues(location, log);
    try {
      const build = { id: randomUUID(), attempt: 1 };
      const refused = await queues
        .enqueue('compile', compileJob(build, 'r'))
        .catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(AppError).with.property('code', 'queue_unavailable');
      await proxy.up();
      await eventually(async () => queues.enqueue('compile', compileJob(build, 'r')));
      await eventually(() => expect(done).to.deep.equal([build.id]));
    } finally {
      await consumer.close();
      await queues.close();
      await proxy.down();
      await database.drop();
    }
  });
});

type Location = { DATABASE_URL: string; REDIS_URL: string | undefined };

/** What every place the queues can live in has to do. */
function queueSuite(open: () => Promise<{ location: Location; close(): Promise<void> }>): void {
  let location: Location;
  let closeLocation: () => Promise<void>;
  let logged: TestLog;
  let queues: Queues;
  const consumers: Consumer[] = [];

  const work = (process: (job: CompileJob) => Promise<void>, concurrency = 2) => {
    const consumer = consume(location, 'compile', ({ data }) => process(data), concurrency, logged.log);
    consumers.push(consumer);
    return consumer;
  };
  const attempt = () => ({ id: randomUUID(), attempt: 1 });

  before(async () => {
    const opened = await open();
    location = opened.location;
    closeLocation = opened.close;
  });
  beforeEach(() => {
    logged = createTestLog();
    queues = openQueues(location, logged.log);
  });
  afterEach(async () => {
    for (const consumer of consumers.splice(0)) await consumer.close();
    await queues.close();
  });
  after(() => closeLocation());

  it('delivers a job to a consumer, with its ids', async () => {
    const build = attempt();
    await queues.enqueue('compile', compileJob(build, 'request-1'));
    expect(await queues.hasJob('compile', buildJobId(build))).to.equal(true);
    const seen: CompileJob[] = [];
    work(async (job) => {
      seen.push(job);
    });
    await eventually(() =>
      expect(seen).to.deep.equal([{ buildId: build.id, attempt: 1, requestId: 'request-1' }]),
    );
    await eventually(async () => expect(await queues.hasJob('compile', buildJobId(build))).to.equal(false));
  });

  it('runs the same attempt of a build only once', async () => {
    const build = attempt();
    for (let time = 0; time < 3; time++)
      await queues.enqueue('compile', compileJob(build, `request-${time}`));
    await queues.enqueue('compile', compileJob({ ...build, attempt: 2 }, 'again'));
    const seen: string[] = [];
    work(async ({ requestId }) => {
      seen.push(requestId);
    }, 1);
    await eventually(() => expect(seen).to.include('again'));
    expect(seen).to.deep.equal(['request-0', 'again']);
  });

  it('runs the configured number of jobs at a time, and loses none', async () => {
    const builds = Array.from({ length: 40 }, attempt);
    let running = 0;
    let most = 0;
    const done = new Set<string>();
    work(async ({ buildId }) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      done.add(buildId);
    }, 4);
    await Promise.all(builds.map((build) => queues.enqueue('compile', compileJob(build, 'many'))));
    await eventually(() => expect(done.size).to.equal(builds.length));
    expect(most).to.be.within(1, 4);
  });

  it('accepts a webhook and an order of a certificate again whose job has failed', async () => {
    logged.expectErrors(/lost [12]/);
    const [alert, order] = [
      { deliveryId: randomUUID(), attempts: 0 },
      { domainId: 'd', ticket: randomUUID() },
    ];
    let failed = 0;
    const done: object[] = [];
    const failFirst = async ({ data }: { readonly data: object }) => {
      if (failed < 2) throw new Error(`lost ${++failed}`);
      done.push(data);
    };
    for (const queue of ['alert', 'acme'] as const)
      consumers.push(consume(location, queue, failFirst, 1, logged.log));
    const enqueue = () => Promise.all([queues.enqueue('alert', alert), queues.enqueue('acme', order)]);
    await enqueue();
    await eventually(() => expect(failed).to.equal(2));
    await eventually(async () => {
      await enqueue();
      expect(done).to.deep.include.members([alert, order]);
    });
  });

  it('finishes active jobs before a consumer closes', async () => {
    let finish: () => void = () => undefined;
    let started = false;
    let finished = false;
    const consumer = work(async () => {
      started = true;
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      finished = true;
    });
    await queues.enqueue('compile', compileJob(attempt(), 'slow'));
    await eventually(() => expect(started).to.equal(true));
    consumers.splice(consumers.indexOf(consumer), 1);
    const closing = consumer.close();
    finish();
    await closing;
    expect(finished).to.equal(true);
  });

  it('logs a job that fails, and continues', async () => {
    logged.expectErrors(/job failed/);
    const seen: string[] = [];
    work(async ({ requestId }) => {
      if (requestId === 'bad') throw new Error('this one fails');
      seen.push(requestId);
    }, 1);
    await queues.enqueue('compile', compileJob(attempt(), 'bad'));
    await queues.enqueue('compile', compileJob(attempt(), 'good'));
    await eventually(() => expect(seen).to.deep.equal(['good']));
    expect(logged.lines.some(({ msg }) => msg === 'job failed')).to.equal(true);
  });

  describe('an import', () => {
    const handlersOf = (importId: string, number: number) =>
      Array.from({ length: number }, () => ({ importId, endpointId: randomUUID(), attempt: 1 }));

    /** Works on handlers and imports; tells what it has seen, in order. */
    const workOnImports = (failing: readonly string[] = []) => {
      const seen: string[] = [];
      const handler = async ({ data }: { data: HandlerJob }) => {
        seen.push(data.endpointId);
        if (failing.includes(data.endpointId)) throw new Error('this one fails');
      };
      const parent = async ({ data }: { data: ImportJob }) => {
        seen.push(`${data.importId} ${data.requestId}`);
      };
      consumers.push(
        consume(location, 'handler', handler, 3, logged.log),
        consume(location, 'import', parent, 3, logged.log),
      );
      return seen;
    };

    it('runs the job of an import after those of its handlers', async () => {
      const importId = randomUUID();
      const handlers = handlersOf(importId, 12);
      await queues.enqueueImport({ importId, requestId: 'r' }, handlers);
      const [first] = handlers;
      if (!first) throw new Error('no handlers');
      expect(await queues.hasJob('handler', handlerJobId(first))).to.equal(true);
      expect(await queues.hasJob('handler', handlerJobId({ ...first, attempt: 2 }))).to.equal(false);
      const seen = workOnImports();
      await eventually(() => expect(seen).to.include(`${importId} r`));
      expect(seen.slice(0, -1)).to.have.members(handlers.map(({ endpointId }) => endpointId));
      await eventually(async () =>
        expect(await queues.hasJob('handler', handlerJobId(first))).to.equal(false),
      );
    });

    it('runs the job of an import even if some or all of its handlers fail', async () => {
      logged.expectErrors(/job failed/);
      const importId = randomUUID();
      const handlers = handlersOf(importId, 3);
      const other = randomUUID();
      const failing = [...handlers.slice(1), ...handlersOf(other, 2)];
      await queues.enqueueImport({ importId, requestId: 'r' }, handlers);
      await queues.enqueueImport({ importId: other, requestId: 'r' }, failing.slice(2));
      const seen = workOnImports(failing.map(({ endpointId }) => endpointId));
      await eventually(() => expect(seen).to.include.members([`${importId} r`, `${other} r`]));
      expect(seen).to.have.length(7);
    });

    it('runs the job of an import without waiting for a handler that was queued again', async () => {
      const importId = randomUUID();
      const [handler] = handlersOf(importId, 1);
      if (!handler) throw new Error('no handler');
      for (let time = 0; time < 3; time++)
        await queues.enqueue('handler', { ...handler, attempt: 2, requestId: 'again' });
      expect(await queues.hasJob('handler', handlerJobId({ ...handler, attempt: 2 }))).to.equal(true);
      const seen = workOnImports();
      await queues.enqueueImport({ importId, requestId: 'r' }, [handler]);
      await eventually(() => expect(seen).to.include(`${importId} r`));
      expect(seen.filter((id) => id === handler.endpointId)).to.have.length(2);
    });

    it('accepts an import with 1,500 handlers', async () => {
      const importId = randomUUID();
      const handlers = handlersOf(importId, 1_500);
      await queues.enqueueImport({ importId, requestId: 'r' }, handlers);
      const last = handlers.at(-1);
      expect(last && (await queues.hasJob('handler', handlerJobId(last)))).to.equal(true);
      const depths = await queues.depths();
      expect(depths).to.deep.include({ queue: 'handler', state: 'waiting', jobs: 1_500 });
    });
  });

  it('shows all queues and their counts to operators', async () => {
    await queues.enqueue('compile', compileJob(attempt(), 'waiting'));
    const names = ['compile', 'import', 'handler', 'invoke', 'schedule', 'alert', 'apply', 'acme'];
    expect(queues.all.map(({ name }) => name)).to.deep.equal(names);
    const counts = await queues.all[0]?.getJobCounts('waiting');
    expect(counts?.['waiting']).to.equal(1);
  });
}

describe('queues on PostgreSQL', () => {
  queueSuite(async () => {
    const database: TestDatabase = await createDatabase();
    return { location: { DATABASE_URL: database.url, REDIS_URL: undefined }, close: database.drop };
  });
});

describe('queues on Redis', () => {
  queueSuite(async () => {
    const redis: TestRedis = await startRedis();
    return { location: { DATABASE_URL: 'postgres://unused', REDIS_URL: redis.url }, close: redis.remove };
  });

  it('fails to queue a job at once while Redis is down, and works after its restart', async () => {
    const redis = await startRedis();
    await redis.stop();
    const logged = createTestLog();
    // Redis is away already when the queue is made.
    const queues = openQueues({ DATABASE_URL: 'postgres://unused', REDIS_URL: redis.url }, logged.log);
    const build = { id: randomUUID(), attempt: 1 };
    try {
      const failure = await queues
        .enqueue('compile', compileJob(build, 'away'))
        .catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(AppError);
      expect(failure).to.include({ code: 'queue_unavailable', status: 503 });
      const job = { importId: randomUUID(), requestId: 'away' };
      const handlers = [{ importId: job.importId, endpointId: randomUUID(), attempt: 1 }];
      const other = await queues.enqueueImport(job, handlers).catch((error: unknown) => error);
      expect(other).to.include({ code: 'queue_unavailable' });
      await redis.start();
      await eventually(() => queues.enqueue('compile', compileJob(build, 'back')));
      expect(await queues.hasJob('compile', buildJobId(build))).to.equal(true);
    } finally {
      await queues.close();
      await redis.remove();
    }
  });
});

describe('queues on PostgreSQL that is down', () => {
  it('fails with queue_unavailable when PostgreSQL, where the queues live, is down', async () => {
    const logged = createTestLog();
    const url = `postgres://nobody@127.0.0.1:${await freePort()}/none`;
    const queues = openQueues({ DATABASE_URL: url, REDIS_URL: undefined }, logged.log);
    const failure = await queues
      .enqueue('compile', compileJob({ id: randomUUID(), attempt: 1 }, 'away'))
      .catch((error: unknown) => error);
    expect(failure).to.include({ code: 'queue_unavailable' });
    await queues.close();
  });
});
