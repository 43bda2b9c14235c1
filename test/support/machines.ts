/**
 * Machines of one installation: each has a separate name, clock, `DATA_DIR`, ports and processes; they share one
 * PostgreSQL, one Redis and the artifacts in S3. A test can interrupt the connections of each to PostgreSQL and S3.
 */
import { freePort } from './ports.js';
import { createDatabase, type TestDatabase } from './postgres.js';
import { type Stack, startStack } from './processes.js';
import { startRedis, type TestRedis } from './redis.js';
import { startS3, type TestS3 } from './s3.js';
import { startProxy, type TcpProxy } from './tcp-proxy.js';
import { SECRET_KEY } from './test-services.js';

const BUCKET = 'artifacts';
/** Offset of the second machine's clock: nothing may depend on synchronized clocks. S3 accepts up to 15 minutes. */
const AHEAD_MS = 300_000;

/** One machine with its processes. */
export interface Machine extends Stack {
  readonly hostname: string;
  /** Its proxy to PostgreSQL. */
  readonly postgres: TcpProxy;
  /** Its proxy to the artifact store. */
  readonly s3: TcpProxy;
}

/** All machines, and the servers they share. */
export interface Machines {
  readonly a: Machine;
  readonly b: Machine;
  readonly database: TestDatabase;
  readonly redis: TestRedis;
  close(): Promise<void>;
}

/** Starts two machines. @param env settings of both */
export async function startMachines(env: Record<string, string> = {}): Promise<Machines> {
  const servers = { database: await createDatabase(), redis: await startRedis(), s3: await startS3(BUCKET) };
  const started: Machine[] = [];
  const close = async () => {
    for (const machine of started) await machine.close();
    for (const { postgres, s3 } of started) await Promise.all([postgres.down(), s3.down()]);
    await servers.s3.remove();
    await servers.redis.remove();
    await servers.database.drop();
  };
  try {
    const start = async (hostname: string, more: Record<string, string> = {}) => {
      const machine = await startMachine(hostname, servers, { ...env, ...more });
      started.push(machine);
      return machine;
    };
    const [a, b] = [await start('machine-a'), await start('machine-b', clockAhead(AHEAD_MS))];
    return { a, b, database: servers.database, redis: servers.redis, close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Servers {
  readonly database: TestDatabase;
  readonly redis: TestRedis;
  readonly s3: TestS3;
}

async function startMachine(
  hostname: string,
  { database, redis, s3 }: Servers,
  env: Record<string, string>,
): Promise<Machine> {
  const ways = { postgres: await startProxy(database.url), s3: await startProxy(s3.settings.S3_ENDPOINT) };
  try {
    const stack = await startStack({
      database,
      hostname,
      databaseUrl: async () => ways.postgres.url,
      env: {
        SECRET_KEY,
        REDIS_URL: redis.url,
        ARTIFACTS_URL: `s3://${BUCKET}`,
        ...s3.settings,
        S3_ENDPOINT: ways.s3.url,
        ACTOR_HOST_PORT: String(await freePort()),
        GATEWAY_INTERNAL_PORT: String(await freePort()),
        GATEWAY_CONCURRENCY: '2',
        ...env,
      },
    });
    return { ...stack, ...ways, hostname };
  } catch (error) {
    await Promise.all([ways.postgres.down(), ways.s3.down()]);
    throw error;
  }
}

/** Settings for Node processes with a clock ahead, which their children inherit. */
function clockAhead(ms: number): Record<string, string> {
  const code = `const real = Date.now; globalThis.Date = class extends Date {
    constructor(...given) { if (given.length > 0) super(...given); else super(real() + ${ms}); }
    static now() { return real() + ${ms}; }
  };`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` };
}
