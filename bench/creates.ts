/** How many resources a second does the API create, compared with bare INSERTs of the same rows? */
import pg from 'pg';
import type { Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, round } from './support/report.js';

const AT_A_TIME = 16;
const SECONDS = 3;
const ROUNDS = 5;

export const creates: Benchmark = () =>
  withStacks([{ env: { LOG_LEVEL: 'info' } }], async (stack) => {
    if (!stack) throw new Error('no stack');
    const pool = new pg.Pool({ connectionString: stack.databaseUrl, max: AT_A_TIME });
    try {
      const pairs: { api: number; bare: number }[] = [];
      for (let round = 0; round <= ROUNDS; round++) {
        const pair = {
          api: await apiRate(stack, round),
          bare: await bareRate(pool, round),
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
      await pool.end();
    }
  });

/** Creates a second through the API. The load comes from wrk, which leaves more of the machine to both sides. */
async function apiRate({ apiUrl }: Stack, round: number): Promise<number> {
  const script = `
    local number = 0
    request = function()
      number = number + 1
      local host = string.format("api-${round}-%d.test", number)
      local body = string.format('{"name":"%s","host":"%s","description":"a description"}', host, host)
      return wrk.format("POST", "/api/domains", { ["Content-Type"] = "application/json" }, body)
    end`;
  return (await load({ url: apiUrl, seconds: SECONDS, connections: AT_A_TIME, script })).requestsPerSecond;
}

/** Bare INSERTs a second, so many at a time. */
async function bareRate(pool: pg.Pool, round: number): Promise<number> {
  let number = 0;
  const end = performance.now() + SECONDS * 1000;
  const lane = async () => {
    while (performance.now() < end) await insert(pool, `bare-${round}-${number++}.test`);
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: AT_A_TIME }, lane));
  return number / ((performance.now() - started) / 1000);
}

function insert(pool: pg.Pool, host: string): Promise<unknown> {
  return pool.query(
    'INSERT INTO domains (name, host, description, enabled) VALUES ($1, $2, $3, $4) RETURNING *',
    [host, host, 'a description', true],
  );
}

await runAlone(import.meta.url, creates);
