/** Which policies a gateway still has to tell its front, in how many messages, and how many of a domain it takes. */
import { expect } from 'chai';
import { compactEndpoint } from '../../src/gateway/compact-endpoint.js';
import type { EndpointState } from '../../src/gateway/front/messages.js';
import { messagesOf } from '../../src/gateway/front/state-messages.js';
import { Environments } from '../../src/gateway/handlers/environments.js';
import { partOf, withDigest } from '../../src/gateway/policies/compiled-policies.js';
import { PoliciesInForce } from '../../src/gateway/policies/policies-in-force.js';
import type { Database } from '../../src/store/database.js';
import { Threads } from '../../src/threads/threads.js';
import { createTestLog } from '../support/log.js';
import { useTestStore } from '../support/store.js';

const NONE = { collection_policies: null, collection_id: null };
const DOMAIN = 'd0000000-0000-4000-8000-000000000000';
const KB = 1024;
const WARNING = 'a policy lets nobody in';

function endpoint(
  id: string,
  own: object | null,
  ofDomain: object | null = null,
  domain = 'a.example',
  validate: string | null = null,
) {
  return compactEndpoint({
    ...{ id, version: 1, domain, method: 'GET', route: '/', routed: true, limits: null, ...NONE },
    ...{ deployment: null, environment: null, stopped: false, failed: false },
    domain_id: ofDomain && DOMAIN,
    domain_policies: ofDomain && JSON.stringify(ofDomain),
    own_policies: own && JSON.stringify(own),
    validate,
  });
}

/** A policy of so many bytes, which no other number has. */
function headers(number: number, bytes: number) {
  return { headers: { request: { set: { [`X-${number}`]: 'x'.repeat(bytes) } } } };
}

describe('the policies of a gateway', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });
  const threads = new Threads();
  after(() => threads.close());

  function inForce(limit = 64 * KB * KB, run: Pick<Threads, 'run'> = threads) {
    const { log, lines } = createTestLog();
    const again: string[] = [];
    const policies = new PoliciesInForce({
      ...{
        store,
        environments: new Environments(store, (text) => text),
        log,
        policyBytes: limit,
        threads: run,
      },
      readAgain: (id) => again.push(id),
    });
    const isRefused = (id: string) => policies.of(id)?.broken !== undefined;
    return { policies, lines, isRefused, again: () => again.splice(0) };
  }

  it('policies are named as changed until the front has them, however often a change is tried', async () => {
    const { policies } = inForce();
    const endpoints = [endpoint('one', { timeout: 1_000 }), endpoint('two', null)];
    const changed = async () => [...(await policies.update(endpoints))];
    expect(await changed()).to.deep.equal(['one']);
    // The front could not take them.
    expect(await changed()).to.deep.equal(['one']);
    policies.sent(['one']);
    expect(await changed()).to.deep.equal([]);
    endpoints[0] = endpoint('one', null);
    expect(await changed()).to.deep.equal(['one']);
  });

  it('what many endpoints of a domain have in common is kept once, and is once in a message', async () => {
    const { policies } = inForce();
    const shared = headers(0, 250 * KB);
    const endpoints = Array.from({ length: 500 }, (_, at) =>
      endpoint(`${at}`, { timeout: at + 1, body_limit: at }, shared),
    );
    // A row of each read has texts of its own.
    await policies.update(endpoints.slice(0, 250));
    await policies.update(endpoints.slice(250));
    const parts = new Set(endpoints.map(({ id }) => policies.of(id)?.parts['headers']));
    expect(parts.size).to.equal(1);
    const states = endpoints.map(({ id }) => ({ id, policies: policies.of(id) }) as unknown as EndpointState);
    const messages = [...messagesOf(states)];
    expect(messages.length).to.equal(1);
    const [part] = parts;
    expect(messages[0]?.policies).to.deep.equal({ [part?.digest ?? '']: part?.text });
    expect(new Set(messages[0]?.upserts.map(({ policies }) => policies?.parts['headers']))).to.deep.equal(
      new Set([part?.digest]),
    );
  });

  it('endpoints that a domain has no room for let nobody in until it has', async () => {
    const { policies, lines, isRefused, again } = inForce(1024 * KB);
    const one = endpoint('one', headers(1, 600 * KB));
    const two = endpoint('two', headers(2, 600 * KB));
    const elsewhere = endpoint('elsewhere', headers(3, 600 * KB), null, 'b.example');
    await policies.update([one, two, elsewhere]);
    expect(['one', 'two', 'elsewhere'].map(isRefused)).to.deep.equal([false, true, false]);
    expect(policies.of('two')?.broken).to.equal(
      'the policies of the domain "a.example" have more than 1 MiB together (POLICIES_OF_DOMAIN_MB)',
    );
    expect(policies.of('two')?.parts).to.deep.equal({});
    expect(lines.filter(({ msg }) => msg === WARNING)).to.have.length(1);
    // Who serves goes on to, and reading the other one again changes nothing.
    expect(again()).to.deep.equal([]);
    await policies.update([two, one]);
    expect(['one', 'two'].map(isRefused)).to.deep.equal([false, true]);
    again();
    await policies.update([two]);
    expect(again()).to.deep.equal([]);
    policies.sent(['one', 'two', 'elsewhere']);
    await policies.update([endpoint('one', headers(1, 300 * KB))]);
    expect(again()).to.deep.equal(['two']);
    expect([...(await policies.update([two]))]).to.deep.equal(['two']);
    expect(isRefused('two')).to.equal(false);
  });

  it('all that were refused are read again, until none is left that was not tried', async () => {
    const { policies, isRefused, again } = inForce(1024 * KB);
    const large = Array.from({ length: 250 }, (_, at) => endpoint(`${at}`, headers(at, 900 * KB)));
    const small = endpoint('small', headers(1000, 200 * KB));
    await policies.update([endpoint('one', headers(2000, 1000 * KB)), ...large, small]);
    await policies.update([endpoint('one', headers(2000, 800 * KB))]);
    const tried: string[] = [];
    for (let ids = again(); ids.length > 0; ids = again()) {
      expect(ids.length).to.be.at.most(100);
      tried.push(...ids);
      const half = Math.ceil(ids.length / 2);
      for (const some of [ids.slice(0, half), ids.slice(half)])
        await policies.update([...large, small].filter(({ id }) => some.includes(id)));
    }
    expect(isRefused('small')).to.equal(false);
    expect(tried).to.have.members([...large, small].map(({ id }) => id));
    // An endpoint that stays as it is makes no room.
    await policies.update([endpoint('one', headers(2000, 800 * KB))]);
    expect(again()).to.deep.equal([]);
  });

  it('an endpoint that stays as it is keeps its room when another one grows', async () => {
    const { policies, isRefused } = inForce(1024 * KB);
    const stays = endpoint('stays', headers(1, 500 * KB));
    await policies.update([endpoint('grows', headers(2, 400 * KB)), stays]);
    await policies.update([endpoint('grows', headers(2, 600 * KB)), stays]);
    expect(['stays', 'grows'].map(isRefused)).to.deep.equal([false, true]);
  });

  it('an endpoint that is gone makes room', async () => {
    const { policies, isRefused, again } = inForce(1024 * KB);
    const endpoints = [1, 2, 3].map((number) => endpoint(`${number}`, headers(number, 600 * KB)));
    await policies.update(endpoints);
    policies.forget('1');
    expect(again()).to.deep.equal(['2', '3']);
    await policies.update(endpoints.slice(1));
    expect(['2', '3'].map(isRefused)).to.deep.equal([false, true]);
    // It has been tried with all the room that there was.
    expect(again()).to.deep.equal([]);
    policies.forget('3');
    policies.forget('2');
    expect(again()).to.deep.equal([]);
    await policies.update([endpoint('4', headers(4, 900 * KB))]);
    expect(isRefused('4')).to.equal(false);
  });

  it('of large policies only some are compiled before it is decided which of them a domain has room for', async () => {
    let compiled = 0;
    const isDecided: boolean[] = [];
    const run = async () => {
      isDecided.push(policies.of('0') !== undefined);
      return JSON.stringify({ text: `${compiled++}`.padEnd(20 * KB * KB, 'x') });
    };
    const { policies, isRefused } = inForce(50 * KB * KB, { run } as unknown as Threads);
    const validate = (at: number) => JSON.stringify({ mode: 'enforce', text: `${at}`.padEnd(65 * KB, 'x') });
    const endpoints = Array.from({ length: 6 }, (_, at) =>
      endpoint(`${at}`, {}, null, 'a.example', validate(at)),
    );
    await policies.update(endpoints);
    expect(isDecided).to.deep.equal([false, false, false, false, true, true]);
    expect(endpoints.filter(({ id }) => !isRefused(id)).map(({ id }) => id)).to.deep.equal(['0', '1']);
    // Also of those that were refused, nothing is kept.
    expect(endpoints.map((one) => one.validate)).to.deep.equal(endpoints.map(() => null));
  });

  it('other tasks run while policies of many endpoints are compiled, and what stays is not digested again', async () => {
    const { policies } = inForce();
    const endpoints = (timeout: number) =>
      Array.from({ length: 50 }, (_, at) => endpoint(`${at}`, { timeout, ...headers(at, 200 * KB) }));
    let turns = 0;
    const counting = setInterval(() => turns++);
    await policies.update(endpoints(1_000));
    clearInterval(counting);
    expect(turns).to.be.above(1);
    const parts = () => endpoints(0).map(({ id }) => policies.of(id)?.parts['headers']);
    const before = parts();
    await policies.update(endpoints(2_000));
    expect(parts().every((part, at) => part === before[at])).to.equal(true);
  });

  it('states with large policies of any kind are sent in several messages', () => {
    const states = Array.from({ length: 10 }, (_, id) => {
      const part = partOf(headers(id, KB * KB));
      const policies = withDigest({ parts: { headers: part } });
      return { id: String(id), policies } as unknown as EndpointState;
    });
    const messages = [...messagesOf(states)];
    expect(messages.flatMap(({ upserts }) => upserts.map(({ id }) => id))).to.deep.equal(
      states.map(({ id }) => id),
    );
    expect(messages.length).to.be.within(3, 5);
    for (const { upserts, policies } of messages)
      expect(Object.keys(policies).length).to.equal(upserts.length);
  });
});
