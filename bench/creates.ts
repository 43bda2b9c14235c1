/** How many resources a second does the API create, compared with bare INSERTs of the same rows? */
import { Agent, request } from 'node:http';
import pg from 'pg';
import type { Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, round } from './support/report.js';

const AT_A_TIME = 16;
const COUNT = 3_000;
const ROUNDS = 5;

export const creates: Benchmark = () =>
  withStacks([{ env: { LOG_LEVEL: 'info' } }], async (stack) => {
    if (!stack) throw new Error('no stack');
    const pool = new pg.Pool({ connectionString: stack.databaseUrl, max: AT_A_TIME });
    const agent = new Agent({ keepAlive: true, maxSockets: AT_A_TIME });
    try {
      const pairs: { api: number; bare: number }[] = [];
      for (let round = 0; round <= ROUNDS; round++) {
        const pair = {
          api: await rate((number) => createThroughApi(stack, agent, `api-${round}-${number}.test`)),
          bare: await rate((number) => insert(pool, `bare-${round}-${number}.test`)),
        };
        if (round > 0) pairs.push(pair);
      }
      return [
        {
          question:
            'creates/s through the API (domains, 16 at a time) against bare `pg` INSERTs of the same row',
          measured: `${round(median(pairs.map(({ api }) => api)))}/s against ${round(median(pairs.map(({ bare }) => bare)))}/s`,
          value: median(pairs.map(({ api, bare }) => api / bare)),
          unit: 'x',
          bar: { atLeast: 0.4 },
        },
      ];
    } finally {
      agent.destroy();
      await pool.end();
    }
  });

/** Runs so many creates, so many at a time; returns how many a second. */
async function rate(create: (number: number) => Promise<unknown>): Promise<number> {
  let next = 0;
  const started = performance.now();
  const lane = async () => {
    while (next < COUNT) await create(next++);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, lane));
  return COUNT / ((performance.now() - started) / 1000);
}

function insert(pool: pg.Pool, host: string): Promise<unknown> {
  return pool.query(
    'INSERT INTO domains (name, host, description, enabled) VALUES ($1, $2, $3, $4) RETURNING *',
    [host, host, 'a description', true],
  );
}

function createThroughApi({ apiUrl }: Stack, agent: Agent, host: string): Promise<void> {
  const body = JSON.stringify({ name: host, host, description: 'a description' });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const outgoing = request(`${apiUrl}/api/domains`, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.on('end', () =>
        response.statusCode === 201 ? resolve() : reject(new Error(String(response.statusCode))),
      );
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

await runAlone(import.meta.url, creates);
