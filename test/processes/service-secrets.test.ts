/** Secrets of services stay where they belong: nobody but their backend and, unless hidden, the API's user sees them. */
import { readdir, readFile } from 'node:fs/promises';
import { expect } from 'chai';
import pg from 'pg';
import { SERVICE_TYPES, type ServiceType } from '../../src/service-configs.js';
import { startRedisBackend } from '../support/backends/redis.js';
import { freePort } from '../support/postgres.js';
import { type Stack, startStack } from '../support/processes.js';
import { bind, connectAs, createEndpoint, createService, SECRET_KEY } from '../support/test-services.js';

/** In every secret of these tests, and nowhere else. */
const MARK = 'Zq7secret';

describe('secrets of services', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack({ env: { SECRET_KEY, LOG_LEVEL: 'debug' } });
  });
  after(() => stack.close());

  it('are in no log, queue, table, error, metric and process argument', async () => {
    const answers: unknown[] = [];
    const post = async (path: string, body?: unknown) => {
      const { body: answer } = await stack.api.post(path, body);
      answers.push(answer);
      return answer;
    };
    const endpointId = await createEndpoint(stack.api, '/secrets');
    const client = await connectAs(stack, endpointId);
    const redis = await startRedisBackend({ password: `${MARK}-right` });
    try {
      const wrong = { ...redis.config, password: `${MARK}-wrong` };
      const configs = await configsThatFail();
      const all: [ServiceType, object][] = [
        ...SERVICE_TYPES.map((type): [ServiceType, object] => [type, configs[type]]),
        ['redis', redis.config],
        ['redis', wrong],
      ];
      for (const [at, [type, config]] of all.entries()) {
        const id = await createService(stack.api, type, config, `${type} ${at}`);
        await bind(stack.api, endpointId, id, `pool-${at}`);
        await post(`/api/services/${id}/test`);
        await post(`/api/services/${id}/activate`);
        for (const op of ['get', 'query', 'send', 'begin', 'nonsense']) {
          const { payload, ...head } = await client.send({ pool: `pool-${at}`, op }, '{}');
          answers.push(head, String(payload));
        }
        await post(`/api/services/${id}/deactivate`);
      }
      // Configs that are refused are not shown in the refusal.
      await post('/api/services', {
        name: 'S',
        service_type: 'postgres',
        config: { host: 'h', password: [`${MARK}-as-a-list`] },
      });

      expectNone('an answer', JSON.stringify(answers));
      expectNone('the metrics', String((await stack.api.get('/metrics')).body));
      expectNone('the queue dashboard', String((await stack.api.get('/queues/api/queues')).body));
      for (const [name, process] of stack.processes) {
        expectNone(`the output of ${name}`, process.printed());
        for (const pid of [process.pid, ...(await childrenOf(process.pid))]) {
          expectNone(`the arguments of ${name}`, await readFile(`/proc/${pid}/cmdline`, 'latin1'));
        }
      }
      expectNone('the database', await everythingIn(stack.databaseUrl));
    } finally {
      await client.close();
      await redis.remove();
    }
  });
});

function expectNone(where: string, text: string): void {
  expect(text.length, `nothing was read of ${where}`).to.be.greaterThan(0);
  const at = text.indexOf(MARK);
  expect(at === -1 ? '' : text.slice(Math.max(0, at - 200), at + 100), `a secret is in ${where}`).to.equal(
    '',
  );
}

/** Configs whose backends are away, each with a secret wherever there is room for one. */
async function configsThatFail(): Promise<Record<ServiceType, object>> {
  const at = { host: '127.0.0.1', port: await freePort() };
  const login = { username: 'somebody', password: `${MARK}-password` };
  return {
    sqlite: { path: '/no/such/folder/file.db' },
    postgres: { ...at, ...login, database: 'd' },
    mysql: { ...at, ...login, database: 'd' },
    redis: { ...at, password: login.password },
    mongodb: { uri: `mongodb://somebody:${MARK}-uri@127.0.0.1:${at.port}/d?serverSelectionTimeoutMS=500` },
    objstore: {
      endpoint: `127.0.0.1:${at.port}`,
      access_key: 'somebody',
      secret_key: `${MARK}-key`,
      bucket: 'b',
    },
    memcached: at,
    ftp: { ...at, ...login, private_key: `${MARK}-private-key`, protocol: 'sftp' },
    email: { ...at, ...login, from_address: 'a@example.com' },
  };
}

async function childrenOf(pid: number): Promise<number[]> {
  const children: number[] = [];
  for (const entry of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const stat = await readFile(`/proc/${entry}/stat`, 'utf8').catch(() => '');
    if (stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] === String(pid)) children.push(Number(entry));
  }
  return children;
}

/** All rows of all tables, those of the queues included. */
async function everythingIn(databaseUrl: string): Promise<string> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    );
    const texts: string[] = [];
    for (const { name } of tables) {
      const { rows } = await client.query<{ text: string }>(
        `SELECT to_jsonb(t)::text AS text FROM ${name} AS t`,
      );
      texts.push(...rows.map(({ text }) => text));
    }
    return texts.join('\n');
  } finally {
    await client.end();
  }
}
