/** Which policies a gateway still has to tell its front, and in how many messages. */
import { expect } from 'chai';
import { compactEndpoint } from '../../src/gateway/compact-endpoint.js';
import { Environments } from '../../src/gateway/environments.js';
import type { EndpointState } from '../../src/gateway/messages.js';
import { PoliciesInForce } from '../../src/gateway/policies-in-force.js';
import { messagesOf } from '../../src/gateway/state-messages.js';
import type { Database } from '../../src/store/database.js';
import { createTestLog } from '../support/log.js';
import { useTestStore } from '../support/store.js';

const NONE = { domain_policies: null, collection_policies: null, domain_id: null, collection_id: null };

function endpoint(id: string, policies: object | null) {
  return compactEndpoint({
    ...{
      id,
      version: 1,
      domain: 'a.example',
      method: 'GET',
      route: '/',
      routed: true,
      limits: null,
      ...NONE,
    },
    ...{ deployment: null, environment: null, stopped: false, failed: false },
    own_policies: policies && JSON.stringify(policies),
  });
}

describe('the policies of a gateway', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });

  it('policies are named as changed until the front has them, however often a change is tried', async () => {
    const environments = new Environments(store, (text) => text);
    const policies = new PoliciesInForce(store, environments, createTestLog().log);
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

  it('states with large policies of any kind are sent in several messages', () => {
    const state = (id: number) =>
      ({
        id: String(id),
        policies: { headers: { set: 'x'.repeat(1024 * 1024) } },
      }) as unknown as EndpointState;
    const states = Array.from({ length: 10 }, (_, id) => state(id));
    const messages = [...messagesOf(states)];
    expect(messages.flat()).to.deep.equal(states);
    expect(messages.length).to.be.within(3, 5);
  });
});
