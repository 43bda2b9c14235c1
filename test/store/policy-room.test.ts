/** What a domain, with its collections and endpoints, may have of policies. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { changesWithoutRoom, type PolicyWrite, withPolicyRoom } from '../../src/api/policies/policy-room.js';
import type { DomainObject, ObjectChange } from '../../src/apply/objects.js';
import { loadConfig } from '../../src/config.js';
import type { Policies } from '../../src/model/policies/policies.js';
import { policyLimit, weightOfPolicies } from '../../src/model/policies/room.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import { applyImport, planImport } from '../../src/store/apply-import.js';
import { createCollection } from '../../src/store/collections.js';
import type { Database } from '../../src/store/database.js';
import { createDomain } from '../../src/store/domains.js';
import { createEndpoint, updateEndpoint } from '../../src/store/endpoints.js';
import { ownPolicies } from '../../src/store/policy-weight.js';
import { EMPTY_API } from '../support/imports.js';
import { useTestStore } from '../support/store.js';

const KB = 1024;
const config = { POLICIES_OF_DOMAIN_MB: 1 };

function policies(bytes: number): Policies {
  return { headers: { request: { set: { 'X-A': 'x'.repeat(bytes) } } } };
}

function tooMuch(host: string): string {
  return `the policies of the domain "${host}" have more than 1 MiB together (POLICIES_OF_DOMAIN_MB)`;
}

describe('the room for the policies of a domain', () => {
  let store: Database;
  let hosts = 0;
  useTestStore((opened) => {
    store = opened;
  });

  /** A domain with a collection and an endpoint, each with 300 KiB of policies. */
  async function domainWithPolicies() {
    const host = `room-${hosts++}.example`;
    const common = { description: null, enabled: true, policies: policies(300 * KB) };
    const domain = await createDomain(store, { name: host, host, ...common });
    const collection = await createCollection(store, {
      ...{ domain_id: domain.id, name: 'c', base_path: null, ...common },
    });
    return { host, domain, collection, endpoint: await addEndpoint(host, '/a', common.policies) };
  }

  function addEndpoint(host: string, path: string, own: Policies | null) {
    return createEndpoint(store, {
      ...{ name: path, path, method: 'GET', domain: host, collection_id: null, description: null },
      ...{
        enabled: true,
        code: null,
        ...ONE_FILE,
        dependencies: null,
        limits: null,
        policies: own,
      },
    });
  }

  async function refusal(write: PolicyWrite): Promise<string | undefined> {
    try {
      await withPolicyRoom({ store, config }, write, async () => {});
      return undefined;
    } catch (thrown) {
      return String((thrown as Error).message);
    }
  }

  it('counts policies of a domain, its collections and its endpoints together', async () => {
    const { host, domain } = await domainWithPolicies();
    const large = policies(200 * KB);
    const refused = `body.policies: ${tooMuch(host)}`;
    expect(await refusal({ table: 'endpoints', host, policies: large })).to.equal(refused);
    expect(await refusal({ table: 'collections', domainId: domain.id, policies: large })).to.equal(refused);
    expect(await refusal({ table: 'endpoints', host, policies: policies(50 * KB) })).to.equal(undefined);
    expect(await refusal({ table: 'endpoints', host, policies: null })).to.equal(undefined);
    expect(await refusal({ table: 'endpoints', host: 'other.example', policies: large })).to.equal(undefined);
  });

  it('counts stored policies once, and lets them get smaller', async () => {
    const { host, domain, collection, endpoint } = await domainWithPolicies();
    const rows = [
      { table: 'domains', id: domain.id },
      { table: 'collections', id: collection.id },
      { table: 'endpoints', id: endpoint.id },
    ] as const;
    for (const row of rows) {
      expect(await refusal({ ...row, policies: policies(400 * KB) })).to.equal(undefined);
      expect(await refusal({ ...row, policies: policies(500 * KB) })).to.equal(
        `body.policies: ${tooMuch(host)}`,
      );
    }
    // Accepted under another setting.
    await updateEndpoint(store, endpoint.id, { policies: policies(900 * KB) });
    for (const row of rows) {
      expect(await refusal({ ...row, policies: policies(250 * KB) })).to.equal(undefined);
      expect(await refusal({ ...row, policies: undefined })).to.equal(undefined);
    }
  });

  it('refuses policies that grow only when they are stored', async () => {
    const { host, endpoint } = await domainWithPolicies();
    const schema = { enum: Array.from({ length: 145 * KB }, () => 1) };
    const spaced: Policies = {
      validate: { mode: 'report', parameters: [{ in: 'query', name: 'a', schema }] },
    };
    expect(JSON.stringify(spaced).length).to.be.below(300 * KB);
    expect(await refusal({ table: 'endpoints', id: endpoint.id, policies: spaced })).to.equal(
      `body.policies: ${tooMuch(host)}`,
    );
  });

  it('writes that come together have no more room than one after the other', async () => {
    const host = 'together.example';
    const own = policies(200 * KB);
    const written = await Promise.allSettled(
      Array.from({ length: 8 }, (_, at) =>
        withPolicyRoom({ store, config }, { table: 'endpoints', host, policies: own }, () =>
          addEndpoint(host, `/${at}`, own),
        ),
      ),
    );
    expect(written.filter(({ status }) => status === 'fulfilled')).to.have.length(5);
  });

  it('short texts count as much as they take in memory, but for those of validate', async () => {
    const set = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`a${at}`, '1']));
    const own: Policies = { headers: { request: { set } } };
    const parameters = [{ in: 'query' as const, name: 'a', schema: { enum: Object.keys(set) } }];
    const validated: Policies = { ...own, validate: { mode: 'report', parameters } };
    const weights = [];
    for (const [at, policies] of [own, validated].entries()) {
      const { id } = await addEndpoint('short.example', `/${at}`, policies);
      const weight = (await ownPolicies(store, 'endpoints', id))?.weight ?? 0;
      // PostgreSQL writes JSON with spaces.
      expect(weight - weightOfPolicies(policies)).to.be.within(0, 1 * KB);
      weights.push(weight);
    }
    expect(weights[0]).to.be.within(10 * KB, 12 * KB);
    expect((weights[1] ?? 0) - (weights[0] ?? 0)).to.be.within(0.5 * KB, 1 * KB);
  });

  it('refuses to move policies to a host without room', async () => {
    const { host, domain } = await domainWithPolicies();
    const small = 'small.example';
    const coming = await addEndpoint(small, '/b', policies(300 * KB));
    const write = { table: 'endpoints', id: coming.id, host, policies: undefined } as const;
    expect(await refusal(write)).to.equal(`body.domain: ${tooMuch(host)}`);
    expect(await refusal({ table: 'domains', id: domain.id, host: small, policies: undefined })).to.equal(
      `body.host: ${tooMuch(small)}`,
    );
    expect(await refusal({ ...write, host: 'empty.example' })).to.equal(undefined);
    // Without its own policies, a domain brings those of its collections and endpoints.
    await addEndpoint(small, '/c', policies(300 * KB));
    expect(await refusal({ table: 'domains', id: domain.id, host: small, policies: null })).to.equal(
      `body.host: ${tooMuch(small)}`,
    );
  });

  it('an import that brings more than there is room for is refused', async () => {
    const { host } = await domainWithPolicies();
    const validate = {
      mode: 'enforce',
      parameters: [{ in: 'query', name: 'a', schema: { const: 'x'.repeat(200 * KB) } }],
    };
    const target = { domain: host, domainId: null, collectionId: null, createCollection: false };
    const endpoint = {
      ...{
        name: 'pets',
        method: 'GET' as const,
        path: '/pets',
        description: null,
        generatedCode: '',
        handler: null,
      },
      validate: JSON.stringify(validate),
    } as const;
    const api = { ...EMPTY_API, endpoints: [endpoint], validation: 'enforce' } as const;
    const plan = (limit: number) => planImport(store, target, api, limit);
    const large = policyLimit({ POLICIES_OF_DOMAIN_MB: 2 });
    expect((await plan(large)).outcome.created).to.equal(1);
    const thrown = await plan(policyLimit(config)).catch((error: unknown) => error);
    expect(String(thrown)).to.include(`query.validate: ${tooMuch(host)}`);
    // Accepted under another setting: it may be there again.
    const record = { id: randomUUID(), compile: false, start: false, request_id: 'request', principal: null };
    await applyImport(store, target, api, record, large);
    expect((await plan(policyLimit(config))).outcome.updated).to.equal(1);
  });

  it('by default, an import of thousands of endpoints with large schemas has room', () => {
    expect(policyLimit(loadConfig({}))).to.be.above(2 * 5_000 * 15 * KB);
  });

  it('changes of an apply are refused at the first that adds too much to a host', async () => {
    const domain = (host: string, bytes: number): DomainObject => ({
      ...{ kind: 'domain', host, name: host, description: null, enabled: true, variables: {}, stack: null },
      policies: policies(bytes),
    });
    const change = (before: DomainObject | null, after: DomainObject | null) =>
      ({ action: 'update', id: null, before, after, fields: [] }) as unknown as ObjectChange;
    const stored = {
      domains: [{ id: '1', object: domain('a.example', 900 * KB) }],
      collections: [],
      endpoints: [],
    };
    const limit = policyLimit(config);
    const more = change(null, domain('a.example', 200 * KB));
    const elsewhere = change(null, domain('b.example', 200 * KB));
    expect([...(await changesWithoutRoom([elsewhere, more, more], stored, limit))]).to.deep.equal([
      [more, tooMuch('a.example')],
    ]);
    // What nobody may have is refused by other checks, which look no further than at its first values.
    const set = Object.fromEntries(Array.from({ length: 20_001 }, (_, at) => [`a${at}`, '1']));
    const toJSON = () => expect.fail('it is not to be weighed');
    const huge = { ...domain('a.example', 0), policies: { headers: { request: { set, toJSON } } } };
    const setting = {
      ...change(null, huge as unknown as DomainObject),
      fields: [{ path: 'policies', before: null, after: null }],
    };
    expect((await changesWithoutRoom([setting as unknown as ObjectChange], stored, limit)).size).to.equal(0);
    const less = change(domain('a.example', 900 * KB), domain('a.example', 500 * KB));
    expect((await changesWithoutRoom([less, more], stored, limit)).size).to.equal(0);
  });
});
