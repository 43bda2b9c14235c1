/** Trials of versions that wait for their turn. */
import { setMaxListeners } from 'node:events';
import { expect } from 'chai';
import { pino } from 'pino';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { HandlerStarts, type HandlerStartsOptions } from '../../src/gateway/handlers/handler-starts.js';
import { Invocations, type InvocationsOptions } from '../../src/gateway/invocations.js';
import type { Invocation } from '../../src/internal/gateway-requests.js';
import type { Database } from '../../src/store/database.js';
import { createDomain } from '../../src/store/domains.js';
import type { RoutedEndpoint } from '../../src/store/endpoint-runs.js';
import { createEndpoint, findEndpoint } from '../../src/store/endpoints.js';
import { eventually } from '../support/eventually.js';
import { useTestStore } from '../support/store.js';

/** More than start before this test has ended. */
const STARTS = 100;

describe('a trial of a version', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });

  it('does not start a trial when nobody waits for it any more', async () => {
    const endpoint = { name: 'E', path: '/x', method: 'GET', domain: '*' } as const;
    const { id } = await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...endpoint });
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    let isOver = false;
    const starts = new HandlerStarts({
      artifacts: {
        get: (artifact: string) =>
          new Promise((_, reject) => {
            begun.push(artifact);
            if (isOver) reject(new Error('ended by the test'));
            ends.push(() => reject(new Error('ended by the test')));
          }),
      },
      environments: { of: async () => ({}) },
      limits: {},
      endpointOf: () => undefined,
      log: pino({ level: 'silent' }),
    } as unknown as HandlerStartsOptions);
    const startBeside = (to: RoutedEndpoint, artifact: string, abandoned?: AbortSignal) => {
      const settings = { limits: {}, environment: null };
      return starts.startBeside(to, {
        ...{ artifact, settings, listeners: {}, level: 'info', abandoned },
      } as unknown as Parameters<HandlerStarts['startBeside']>[1]);
    };
    const others = Array.from({ length: STARTS }, (_, number) =>
      startBeside({ id, domain: '*', domain_id: null } as RoutedEndpoint, `other ${number}`).catch(String),
    );
    let asked = 0;
    const invocations = new Invocations({
      store,
      start: (...[to, artifact, , abandoned]: Parameters<InvocationsOptions['start']>) => {
        asked++;
        return startBeside(to, artifact, abandoned);
      },
    } as unknown as InvocationsOptions);
    const abandoned = new AbortController();
    const tried = { endpointId: id, artifact: 'tried' } as Invocation;
    const ended = invocations.invoke(tried, abandoned.signal).catch(String);
    await eventually(() => expect(asked).to.equal(1));
    abandoned.abort(new Error('nobody waits for it'));
    expect(await ended).to.equal('Error: nobody waits for it');
    isOver = true;
    for (const end of ends) end();
    await Promise.all(others);
    expect(begun).to.have.length(STARTS);
    expect(begun).not.to.include('tried');
  });

  it('somebody with trials of many domains leaves room for those of others', async () => {
    const endpointIds = [];
    for (let number = 0; number < 5; number++) {
      const host = `trials-${number}.example`;
      await createDomain(store, { name: host, host, description: null, enabled: true });
      const endpoint = { name: host, path: '/x', method: 'GET', domain: host } as const;
      endpointIds.push((await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...endpoint })).id);
    }
    const [own = '', ...others] = endpointIds;
    const over = new AbortController();
    setMaxListeners(0, over.signal);
    const invocations = new Invocations({
      store,
      start: () =>
        new Promise((_, reject) => over.signal.addEventListener('abort', () => reject(over.signal.reason))),
    } as unknown as InvocationsOptions);
    const refused: string[] = [];
    const trials: Promise<unknown>[] = [];
    const invoke = (principal: string, endpointId: string) => {
      const invocation = { endpointId, artifact: 'a', principal } as Invocation;
      const trial = invocations.invoke(invocation, over.signal).catch((thrown: { code?: string }) => {
        if (thrown.code === 'gateway_busy') refused.push(principal);
      });
      trials.push(trial);
    };
    for (const endpointId of others) for (let count = 0; count < 20; count++) invoke('greedy', endpointId);
    await eventually(() => expect(refused).to.include('greedy'));
    for (let count = 0; count < 12; count++) invoke('modest', own);
    // Whoever is not let in is refused as soon as its endpoint is read, which is what these do after them.
    for (let count = 0; count < 12; count++) await findEndpoint(store, own);
    over.abort(new Error('ended by the test'));
    await Promise.all(trials);
    expect(refused).not.to.include('modest');
  });
});
