/**
 * Answers of real servers that are damaged on the way: cut, doubled, with other bytes where lengths are. Whatever the
 * client libraries make of them, a connection test ends in time, and says whether there is a connection.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import pLimit from 'p-limit';
import { testInProcess } from '../../../src/actors/service-process/isolated-test.js';
import type { Starter } from '../../../src/actors/service-process/starter.js';
import type { ConnectionTest } from '../../../src/model/connection-test.js';
import type { ServiceConfig, ServiceType } from '../../../src/model/service-configs.js';
import { BACKENDS } from '../../support/backends/all.js';
import { startOpenSsh } from '../../support/backends/sftp.js';
import { type Conversation, playBack, record } from '../../support/lies/recording.js';
import { createTestLog } from '../../support/log.js';
import { openStarter } from '../../support/starter.js';
import { type TempDir, tempDir } from '../../support/temp.js';

const SEED = 20_261_122;
/** Random damage for each protocol, besides that which is done to each answer. */
const RANDOM = 30;
const AT_ONCE = 4;
const TIMEOUT_MS = 1_000;
const LONGEST_MS = 20_000;

let starter: Starter;

/** One way to damage a conversation. */
interface Damage {
  readonly name: string;
  readonly conversations: readonly Conversation[];
}

const SERVERS: Readonly<Record<string, () => Promise<{ config: ServiceConfig; remove(): Promise<void> }>>> = {
  postgres: BACKENDS.postgres,
  mysql: BACKENDS.mysql,
  redis: BACKENDS.redis,
  mongodb: BACKENDS.mongodb,
  objstore: BACKENDS.objstore,
  memcached: BACKENDS.memcached,
  ftp: BACKENDS.ftp,
  sftp: startOpenSsh,
  email: BACKENDS.email,
  http: BACKENDS.http,
};

describe('damaged answers', function () {
  this.timeout(300_000);
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('damaged-answers');
    starter = await openStarter(folder.path);
  });
  after(async () => {
    await starter?.close();
    await folder?.remove();
  });

  for (const [name, start] of Object.entries(SERVERS)) {
    it(`damaged answers of ${name} fail a connection test in time, with a reason, or are not noticed`, async () => {
      const type: ServiceType = name === 'sftp' ? 'ftp' : (name as ServiceType);
      const backend = await start();
      let conversations: Conversation[];
      try {
        conversations = await record(portOf(backend.config), async (port) => {
          const honest = await tested(type, withPort(backend.config, port), 5_000);
          expect(honest, JSON.stringify(honest)).to.include({ connected: true });
        });
      } finally {
        await backend.remove();
      }
      const limit = pLimit(AT_ONCE);
      await Promise.all(
        damages(conversations).map((damage) => limit(() => endures(type, backend.config, damage))),
      );
    });
  }
});

async function endures(type: ServiceType, config: ServiceConfig, damage: Damage): Promise<void> {
  const server = await playBack(damage.conversations);
  try {
    const began = performance.now();
    const outcome = await tested(type, withPort(config, server.port), TIMEOUT_MS);
    expect(performance.now() - began, damage.name).to.be.below(LONGEST_MS);
    const said = outcome.connected ? outcome.message : outcome.error;
    expect(said, damage.name).to.be.a('string').with.length.above(5);
  } finally {
    await server.close();
  }
}

function tested(type: ServiceType, config: ServiceConfig, timeoutMs: number): Promise<ConnectionTest> {
  const request = {
    service: { id: 'test of damaged answers', type },
    config,
    answerBytes: 1024 ** 2,
    memoryMb: 128,
    sqliteFolders: ['/'] as const,
    logsDebug: false,
    timeoutMs,
  };
  return testInProcess('test', request, async () => false, starter, createTestLog().log);
}

/** All damage that is done to the conversations of a server. */
function damages(conversations: readonly Conversation[]): Damage[] {
  const turns = conversations.flatMap((turns, connection) =>
    turns.flatMap((said, turn) => (said.length > 0 ? [{ connection, turn, said }] : [])),
  );
  const damaged = (at: (typeof turns)[number], what: string, bytes: Buffer): Damage => ({
    name: `${what} in turn ${at.turn} of connection ${at.connection}`,
    conversations: conversations.map((others, connection) =>
      connection === at.connection ? others.with(at.turn, bytes) : others,
    ),
  });
  const each = turns
    .slice(0, 6)
    .flatMap((at) => [
      damaged(at, 'half', at.said.subarray(0, at.said.length >> 1)),
      damaged(at, 'all of it twice', Buffer.concat([at.said, at.said])),
    ]);
  const random = fc.sample(
    fc.record({
      at: fc.constantFrom(...turns),
      place: fc.nat({ max: 64 }),
      value: fc.oneof(
        fc.constantFrom('00000000', 'ffffffff', '7fffffff', 'ffffff7f', '0000', 'ffff', '00', 'ff'),
        fc.uint8Array({ minLength: 1, maxLength: 16 }).map((bytes) => Buffer.from(bytes).toString('hex')),
        fc.constantFrom('+1', '-1'),
      ),
    }),
    { seed: SEED, numRuns: RANDOM },
  );
  return [
    ...each,
    ...random.map(({ at, place, value }) => {
      const bytes = Buffer.from(at.said);
      const start = place % bytes.length;
      if (value === '+1' || value === '-1') bytes[start] = ((bytes[start] ?? 0) + Number(value)) & 0xff;
      else Buffer.from(value, 'hex').copy(bytes, start);
      return damaged(at, `${value} at byte ${start}`, bytes);
    }),
  ];
}

function portOf(config: ServiceConfig): number {
  if ('endpoint' in config) return Number(config.endpoint.split(':')[1]);
  if ('base_url' in config) return Number(new URL(config.base_url).port);
  return Number('port' in config ? config.port : undefined);
}

function withPort(config: ServiceConfig, port: number): ServiceConfig {
  const address = `127.0.0.1:${port}`;
  const changed =
    'endpoint' in config
      ? { endpoint: address }
      : 'base_url' in config
        ? { base_url: `http://${address}/v1` }
        : { port };
  return { ...config, ...changed } as ServiceConfig;
}
