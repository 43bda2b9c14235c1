/**
 * Machines that work together: each has a name, a `DATA_DIR`, ports and all processes of its own; they share one
 * PostgreSQL, one Redis and the artifacts in S3. Each reaches the first and the last by ways that a test can cut.
 */
import { createDatabase, freePort, type TestDatabase } from './postgres.js';
import { type Stack, startStack } from './processes.js';
import { startRedis, type TestRedis } from './redis.js';
import { startS3, type TestS3 } from './s3.js';
import { startProxy, type TcpProxy } from './tcp-proxy.js';
import { SECRET_KEY } from './test-services.js';

const BUCKET = 'artifacts';

/** One machine with its processes. */
export interface Machine extends Stack {
  readonly hostname: string;
  /** Its way to PostgreSQL. */
  readonly postgres: TcpProxy;
  /** Its way to the artifact store. */
  readonly s3: TcpProxy;
}

/** All machines, and the servers they share. */
export interface Machines {
  readonly a: Machine;
  readonly b: Machine;
  readonly database: TestDatabase;
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
    const start = async (hostname: string) => {
      const machine = await startMachine(hostname, servers, env);
      started.push(machine);
      return machine;
    };
    return { a: await start('machine-a'), b: await start('machine-b'), database: servers.database, close };
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
  const postgresProxy = await startProxy(database.url);
  const s3Proxy = await startProxy(s3.settings.S3_ENDPOINT);
  const stack = await startStack({
    database,
    hostname,
    databaseUrl: async () => postgresProxy.url,
    env: {
      SECRET_KEY,
      REDIS_URL: redis.url,
      ARTIFACTS_URL: `s3://${BUCKET}`,
      ...s3.settings,
      S3_ENDPOINT: s3Proxy.url,
      ACTOR_HOST_PORT: String(await freePort()),
      GATEWAY_CONCURRENCY: '2',
      ...env,
    },
  });
  return { ...stack, hostname, postgres: postgresProxy, s3: s3Proxy };
}
