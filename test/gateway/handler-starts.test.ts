/** Whose handler is started next, when more should start than start at a time. */
import { expect } from 'chai';
import { pino } from 'pino';
import { HandlerStarts, type HandlerStartsOptions } from '../../src/gateway/handlers/handler-starts.js';
import type { RoutedEndpoint } from '../../src/store/endpoint-runs.js';
import { eventually } from '../support/eventually.js';

const GREEDY = { id: 'greedy', domain: 'greedy.example', domain_id: 'g' };
const MODEST = { id: 'modest', domain: 'modest.example', domain_id: 'm' };
/** Of somebody with many hosts, none of which has a domain. */
const HOSTS = Array.from({ length: 20 }, (_, at) => ({
  id: `${at}`,
  domain: `h${at}.example`,
  domain_id: null,
}));
const AT_A_TIME = 8;

describe('starts of handlers', () => {
  /** The endpoints whose start has begun, in order. */
  let begun: string[];
  let fail: Map<string, () => void>;
  let started: Promise<unknown>[];
  let starts: HandlerStarts;
  beforeEach(() => {
    begun = [];
    fail = new Map();
    started = [];
    const endpoints = [GREEDY, MODEST, ...HOSTS] as unknown as RoutedEndpoint[];
    starts = new HandlerStarts({
      // A start lasts until the test ends it.
      artifacts: {
        get: (artifact: string) =>
          new Promise((_, reject) => {
            begun.push(artifact);
            fail.set(artifact, () => reject(new Error('ended by the test')));
          }),
      },
      environments: { of: async () => ({}) },
      limits: {},
      endpointOf: (id: string) => endpoints.find((one) => one.id === id),
      log: pino({ level: 'silent' }),
    } as unknown as HandlerStartsOptions);
  });
  afterEach(async () => {
    await eventually(() => {
      for (const end of fail.values()) end();
      expect(begun).to.have.length(started.length);
    });
    for (const end of fail.values()) end();
    await Promise.all(started);
  });

  const start = (endpointId: string, artifact: string, abandoned?: AbortSignal) => {
    const settings = { limits: {}, environment: null };
    const wanted = { endpointId, artifact, settings, listeners: {}, level: 'info', abandoned };
    const ended = starts.start(wanted as unknown as Parameters<HandlerStarts['start']>[0]).catch(String);
    started.push(ended);
    return ended;
  };

  it('a domain has its handler started next, while another has many that wait', async () => {
    // All before time passes: a start that takes long gives its place to others.
    for (let number = 0; number < 3 * AT_A_TIME; number++) void start(GREEDY.id, `greedy ${number}`);
    void start(MODEST.id, 'modest');
    await eventually(() => expect(begun).to.have.length.least(AT_A_TIME));
    fail.get('greedy 0')?.();
    await eventually(() => expect(begun).to.have.length.above(AT_A_TIME));
    expect(begun[AT_A_TIME]).to.equal('modest');
  });

  it('a domain has its handler started next, while somebody has many hosts without a domain', async () => {
    for (const { id } of HOSTS) void start(id, `host ${id}`);
    void start(MODEST.id, 'modest');
    await eventually(() => expect(begun).to.have.length.least(AT_A_TIME));
    fail.get('host 0')?.();
    await eventually(() => expect(begun).to.have.length.above(AT_A_TIME));
    expect(begun[AT_A_TIME]).to.equal('modest');
  });

  it('a handler that nobody wants any more does not wait for its start', async () => {
    for (let number = 0; number < 2 * AT_A_TIME; number++) void start(GREEDY.id, `greedy ${number}`);
    const abandoned = new AbortController();
    const ended = start(GREEDY.id, 'abandoned', abandoned.signal);
    abandoned.abort(new Error('nobody wants it'));
    expect(await ended).to.equal('Error: nobody wants it');
    started.splice(started.indexOf(ended), 1);
  });
});
