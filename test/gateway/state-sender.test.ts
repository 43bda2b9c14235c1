/** In which order states of endpoints are sent to processes of the front, and what runs meanwhile. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { EndpointState, FrontRequest } from '../../src/gateway/front/messages.js';
import { StateSender } from '../../src/gateway/front/state-sender.js';
import { partOf, withDigest } from '../../src/gateway/policies/compiled-policies.js';

const MB = 1024 * 1024;

/** A state with policies of so many bytes, which no other id has. */
function state(id: string, bytes: number): EndpointState {
  const policies = withDigest({ parts: { headers: partOf(id.padEnd(bytes, 'x')) } });
  return { id, policies } as unknown as EndpointState;
}

/** A process that notes the ids in what it gets, and takes its time for each message, as one that writes it does. */
function receiver() {
  const messages: { readonly ids: readonly string[]; readonly removals: readonly string[] }[] = [];
  return {
    messages,
    request: async (request: FrontRequest) => {
      if (request.type === 'apply')
        messages.push({ ids: request.upserts.map(({ id }) => id), removals: request.removals });
      for (const until = performance.now() + 10; performance.now() < until; );
      return undefined;
    },
  };
}

describe('states on their way to the front', () => {
  it('other tasks run between the messages of a change with large policies', async () => {
    const process = receiver();
    const upserts = Array.from({ length: 10 }, (_, at) => state(`${at}`, 3 * MB));
    const sending = new StateSender().send(
      () => ({ upserts, removals: ['gone'] }),
      () => [process],
    );
    await turn();
    const writtenAtFirst = process.messages.length;
    await sending;
    expect(writtenAtFirst).to.be.within(1, 2);
    expect(process.messages.flatMap(({ ids }) => ids)).to.deep.equal(upserts.map(({ id }) => id));
    expect(process.messages.map(({ removals }) => removals.length)).to.deep.equal([
      1,
      ...Array.from({ length: 9 }, () => 0),
    ]);
  });

  it('a change that comes while a larger one is sent follows it, with its states of that moment', async () => {
    const process = receiver();
    const sender = new StateSender();
    const upserts = Array.from({ length: 5 }, (_, at) => state(`${at}`, 3 * MB));
    const larger = sender.send(
      () => ({ upserts, removals: [] }),
      () => [process],
    );
    await turn();
    let current = 'before';
    const later = sender.send(
      () => ({ upserts: [state(current, 1)], removals: [] }),
      () => [process],
    );
    current = 'now';
    await Promise.all([larger, later]);
    expect(process.messages.flatMap(({ ids }) => ids)).to.deep.equal(['0', '1', '2', '3', '4', 'now']);
  });

  it('nobody waits for the answers of processes that need not be awaited', async () => {
    const ready = receiver();
    const silent = { request: () => new Promise<undefined>(() => {}) };
    await new StateSender().send<Pick<typeof ready, 'request'>>(
      () => ({ upserts: [], removals: ['gone'] }),
      () => [silent, ready],
      (one) => one !== silent,
    );
    expect(ready.messages).to.deep.equal([{ ids: [], removals: ['gone'] }]);
  });
});
