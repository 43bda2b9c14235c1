/** How long the handlers of an apply are prepared, while all other applies wait. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import type { ApplyContext, ApplyTry } from '../../jobs/apply/context.js';
import { prepareHandlers } from '../../jobs/apply/prepare.js';
import { AppError } from '../../src/errors.js';
import type { AddressedNode } from '../../src/internal/addresses.js';
import type { PreparedHandler } from '../../src/internal/gateway-requests.js';

const LIMIT_MS = 50;
const HANDLERS = 5_000;

describe('the preparation of the handlers of an apply', () => {
  const log = pino({ level: 'silent' });
  const handlers = Array.from(
    { length: HANDLERS },
    (_, at): PreparedHandler => ({
      ...{ endpointId: `${at}`, owner: '*', name: `${at}`, artifact: 'a', limits: null, variables: [] },
    }),
  );
  const progress: string[] = [];
  const current = {
    ...{ apply: { id: 'a' }, log, signal: new AbortController().signal },
    progress: async (_state: string, _step: string, done: number, of: number) =>
      void progress.push(`${done}/${of}`),
  } as unknown as ApplyTry;
  const nodeOf = (id: string): AddressedNode => ({ id, hostname: id, address: { socketPath: id } });
  const contextOf = (ids: readonly string[], prepare: (node: string) => Promise<void>) => {
    const gateways = {
      nodes: async () => ids.map(nodeOf),
      prepare: async (address: object, { handlers: asked }: { handlers: readonly unknown[] }) => {
        await prepare((address as { socketPath: string }).socketPath);
        return { ready: asked.length, kept: 0 };
      },
    };
    return { gateways, log } as unknown as ApplyContext;
  };
  beforeEach(() => progress.splice(0));

  it('an apply whose thousands of handlers take long to get ready prepares as many as its time is enough for', async () => {
    const asked: string[] = [];
    const slow = async (node: string) => {
      asked.push(node);
      // Each batch takes longer than all may.
      await delay(2 * LIMIT_MS);
    };
    await prepareHandlers(contextOf(['g', 'h'], slow), current, handlers, LIMIT_MS);
    expect(asked).to.deep.equal(['g', 'h']);
    expect(progress.at(-1)).to.equal(`8/${HANDLERS}`);
  });

  it('an apply fails when a gateway does not answer in the time for the preparation, and says so', async () => {
    const oneAnswers = async (node: string) => {
      await delay(2 * LIMIT_MS);
      if (node === 'h') throw new AppError('no_gateway', 'The gateway has not answered.');
    };
    const failed = await prepareHandlers(
      contextOf(['g', 'h'], oneAnswers),
      current,
      handlers,
      LIMIT_MS,
      LIMIT_MS,
    ).catch((thrown: unknown) => thrown);
    expect(failed).to.be.instanceOf(AppError).with.property('code', 'no_gateway');
    expect(String(failed)).to.include('nothing was changed');
  });

  it('an apply waits for a gateway that does not answer when its time is over, as while it is started again', async () => {
    const tries: string[] = [];
    const answersLate = async (node: string) => {
      tries.push(node);
      if (node === 'g') return;
      await delay(2 * LIMIT_MS);
      if (tries.filter((one) => one === 'h').length < 3)
        throw new AppError('no_gateway', 'The gateway has not answered.');
    };
    await prepareHandlers(contextOf(['g', 'h'], answersLate), current, handlers.slice(0, 8), LIMIT_MS);
    expect(tries.filter((one) => one === 'h')).to.have.length(3);
    expect(progress.at(-1)).to.equal('8/8');
  });

  it('an apply does not fail for a gateway that has not answered and is gone', async () => {
    const ids = ['g', 'h'];
    const goes = async (node: string) => {
      if (node === 'g') return;
      await delay(2 * LIMIT_MS);
      ids.pop();
      throw new AppError('no_gateway', 'The gateway has not answered.');
    };
    await prepareHandlers(contextOf(ids, goes), current, handlers.slice(0, 8), LIMIT_MS);
    expect(progress.at(-1)).to.equal('8/8');
  });

  it('an apply prepares all of its handlers when they are ready in time', async () => {
    const few = handlers.slice(0, 20);
    await prepareHandlers(
      contextOf(['g'], async () => undefined),
      current,
      few,
      60_000,
    );
    expect(progress.at(-1)).to.equal('20/20');
  });
});
