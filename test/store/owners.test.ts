/** Who takes turns: a host that has a domain, and all others together. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { AppError } from '../../src/errors.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import { buildsOfWaitingOwners } from '../../src/store/build-attempts.js';
import { type BuildRequest, requestBuild } from '../../src/store/builds.js';
import type { Database } from '../../src/store/database.js';
import { createDomain } from '../../src/store/domains.js';
import { createEndpoint } from '../../src/store/endpoints.js';
import { insertJob, jobsOfWaitingOwners } from '../../src/store/jobs.js';
import type { TurnsOf } from '../../src/store/owners.js';
import { useTestStore } from '../support/store.js';

describe('owners that take turns', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });
  beforeEach(() => store?.knex.raw('TRUNCATE builds, jobs CASCADE'));
  const HOST = 'with.example';
  /** Of one who has no domain, and makes as many hosts as they like. */
  const HOSTS = ['one.example', 'two.example', 'three.example'];
  before(() => createDomain(store, { name: 'With', host: HOST, description: null, enabled: true }));

  const build = (host: string, number: number, limit?: number, principal: string | null = null) => {
    const source = { sourceKey: `${host} ${number}`, code: `// ${number}`, dependencies: {}, ...ONE_FILE };
    const origin = { requestId: randomUUID(), actor: { kind: 'internal' } } as const;
    return requestBuild(
      store,
      { ...source, endpointId: null, host, origin, principal } satisfies BuildRequest,
      limit,
    );
  };
  const queue = async (domain: string, principal: string | null = null) => {
    const endpoint = { name: domain, path: `/${principal}`, method: 'GET', domain } as const;
    const { id } = await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...endpoint });
    const request = { method: 'GET', path: '/x', headers: {}, body: Buffer.alloc(0) };
    const job = {
      ...{ endpointId: id, request, maxAttempts: 1, backoffMs: 0, delayMs: 0, deduplicationId: null },
      requestId: randomUUID(),
      principal,
    };
    const queued = await insertJob(store, job, { jobs: 10, bytes: 1024 ** 2 });
    return 'full' in queued ? expect.fail('full') : queued.id;
  };

  it('one who makes many hosts without a domain waits for builds as one owner, and has the limit of one', async () => {
    const builds: string[] = [];
    for (const host of [...HOSTS, HOST]) builds.push((await build(host, 1, 3)).id);
    const [first, , , ofDomain] = builds;
    const waiting = await buildsOfWaitingOwners(store, -1_000, 10);
    expect(waiting.map(({ id }) => id)).to.deep.equal([first, ofDomain]);
    const refused = await build('four.example', 1, 3).catch((thrown: unknown) => thrown);
    expect(refused).to.be.instanceOf(AppError).with.property('code', 'queue_full');
    expect(String(refused)).to.match(/hosts without a domain have 3 builds.*BUILDS_QUEUED_LIMIT/);
    await build(HOST, 2, 3);
  });

  it('one who makes many hosts without a domain has one queued request sent beyond those of others', async () => {
    const jobs: string[] = [];
    for (const host of [...HOSTS, HOST]) jobs.push(await queue(host));
    const [first, , , ofDomain] = jobs;
    const waiting = await jobsOfWaitingOwners(store, -1_000, 10);
    expect(waiting.map(({ id }) => id)).to.deep.equal([first, ofDomain]);
    await store.knex('jobs').where({ id: first }).update({ state: 'running' });
    const others = await jobsOfWaitingOwners(store, -1_000, 10);
    expect(others.map(({ id }) => id)).to.deep.equal([ofDomain]);
  });

  it('somebody with many domains has one build made beyond those of others, and then one of each domain', async () => {
    const builds: string[] = [];
    for (const host of [...HOSTS, HOST]) {
      if (host !== HOST) await createDomain(store, { name: host, host, description: null, enabled: true });
      builds.push((await build(host, 1, 9, 'many')).id);
    }
    const other = (await build(HOST, 2, 9, 'other')).id;
    const before = (await build(HOST, 3, 9)).id;
    const idsOf = async (turnsOf: TurnsOf) =>
      (await buildsOfWaitingOwners(store, -1_000, 10, turnsOf)).map(({ id }) => id);
    const [first, ...others] = builds;
    expect(await idsOf('owners')).to.deep.equal([first, other, before]);
    expect(await idsOf('parts')).to.deep.equal([...builds, other, before]);
    await store.knex('builds').where({ id: first }).update({ state: 'running' });
    expect(await idsOf('owners')).to.deep.equal([other, before]);
    expect(await idsOf('parts')).to.deep.equal([...others, other, before]);
  });

  it('a queued build that somebody else joins takes the turn of whoever has fewer builds', async () => {
    for (const number of [1, 2, 3]) await build(HOST, number, 9, 'many');
    const turns = () =>
      store
        .knex('builds')
        .orderBy('queued_at')
        .select<{ principal: string }[]>('principal')
        .pluck('principal');
    // The other one asks for the last of them, too.
    await build(HOST, 3, 9, 'other');
    expect(await turns()).to.deep.equal(['many', 'many', 'other']);
    await build(HOST, 3, 9, 'many');
    expect(await turns()).to.deep.equal(['many', 'many', 'other']);
    await store
      .knex('builds')
      .where({ source_key: `${HOST} 1` })
      .update({ state: 'running' });
    await build(HOST, 1, 9, 'third');
    expect(await turns()).to.deep.equal(['many', 'many', 'other']);
  });

  it('somebody with many domains has one queued request sent beyond those of others, and then one of each domain', async () => {
    const jobs: string[] = [];
    for (const host of [...HOSTS, HOST]) jobs.push(await queue(host, 'many'));
    const other = await queue(HOST, 'other');
    const idsOf = async (turnsOf: TurnsOf) =>
      (await jobsOfWaitingOwners(store, -1_000, 10, turnsOf)).map(({ id }) => id);
    const [first, ...others] = jobs;
    expect(await idsOf('owners')).to.deep.equal([first, other]);
    await store.knex('jobs').where({ id: first }).update({ state: 'running' });
    expect(await idsOf('owners')).to.deep.equal([other]);
    expect(await idsOf('parts')).to.deep.equal([...others, other]);
  });
});
