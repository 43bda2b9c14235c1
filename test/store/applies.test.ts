/** How many applies there can be that have not ended, and how one is read. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { AppError } from '../../src/errors.js';
import type { StoredActor } from '../../src/model/actor.js';
import { findApply } from '../../src/store/applies.js';
import type { Database } from '../../src/store/database.js';
import { insertApply } from '../../src/store/new-applies.js';
import { findShownApply } from '../../src/store/shown-applies.js';
import { useTestStore } from '../support/store.js';

describe('applies that have not ended', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });
  afterEach(() => store.knex('applies').delete());

  /** @returns how many of those that are asked for at the same moment are accepted */
  const askedAtOnce = async (count: number, actor: StoredActor, no_wait = false): Promise<number> => {
    const ask = () =>
      insertApply(store, {
        ...{
          id: randomUUID(),
          stack: 's',
          plan_hash: '',
          rollback_of: null,
          actor,
          rights: null,
          request_id: 'r',
        },
        ...{ plan: {}, changes: [], hosts: [], no_wait },
      });
    const answers = await Promise.allSettled(Array.from({ length: count }, ask));
    for (const answer of answers)
      if (answer.status === 'rejected')
        expect(answer.reason).to.be.instanceOf(AppError).with.property('code', 'apply_busy');
    return answers.filter(({ status }) => status === 'fulfilled').length;
  };
  const somebody = (email: string): StoredActor => ({ kind: 'user', id: randomUUID(), email });

  it('accepts no more applies of somebody than the limit, also when they are asked for at once', async () => {
    const greedy = somebody('greedy@example.test');
    expect(await askedAtOnce(15, greedy)).to.equal(15);
    expect(await askedAtOnce(15, greedy)).to.equal(5);
    expect(await askedAtOnce(1, somebody('other@example.test'))).to.equal(1);
  });

  it('accepts one of several applies that do not wait for others when they are asked for at once', async () => {
    expect(await askedAtOnce(5, somebody('one@example.test'), true)).to.equal(1);
  });

  it('refuses the rollback of an apply that is not kept any more', async () => {
    const rollback_of = randomUUID();
    const rollback = { id: randomUUID(), stack: 's', plan_hash: 'h', rollback_of, actor: null, rights: null };
    const refused = await insertApply(store, {
      ...{ ...rollback, request_id: 'r', plan: {}, changes: [], hosts: [], no_wait: false },
    }).catch((thrown: unknown) => thrown);
    expect(refused).to.be.instanceOf(AppError).with.property('code', 'not_found');
    expect(refused).to.have.property('message', `The apply ${rollback_of} is not kept any more`);
    expect(await findApply(store, rollback.id)).to.equal(undefined);
  });

  it('reads an apply and its changes at one moment, in their order', async () => {
    const changes = ['create', 'update', 'delete'].map((action) => ({ action }));
    for (const written of [changes, []]) {
      const id = randomUUID();
      const apply = {
        id,
        stack: 's',
        plan_hash: 'h',
        rollback_of: null,
        actor: null,
        rights: null,
        request_id: 'r',
      };
      await insertApply(store, {
        ...{ ...apply, plan: { a: 1 }, changes: written as never, hosts: ['*'], no_wait: false },
      });
      const statements: string[] = [];
      const count = ({ sql }: { sql: string }) => void statements.push(sql);
      store.knex.on('query', count);
      const found = await findApply(store, id).finally(() => store.knex.off('query', count));
      expect(found).to.deep.include({ ...apply, plan: { a: 1 }, changes: written, hosts: ['*'] });
      expect(statements).to.have.length(1);
    }
    expect(await findApply(store, randomUUID())).to.equal(undefined);
  });

  it('shows the plan of an apply in its order, with what says who may read each change', async () => {
    const id = randomUUID();
    const endpoint = { kind: 'endpoint', variables: { a: 'b' }, schedules: [] };
    const service = { kind: 'service' };
    const written = [
      { before: service, after: null },
      { before: service, after: endpoint },
    ];
    const plan = { stack: 's', changes: [{ name: 'first' }, { name: 'second' }], warnings: ['w'] };
    await insertApply(store, {
      ...{ id, stack: 's', plan_hash: 'h', rollback_of: null, actor: null, rights: null, request_id: 'r' },
      ...{ plan, changes: written as never, hosts: ['*'], no_wait: false },
    });
    const none = { has_variables: false, has_schedules: false };
    const ofService = { kind: 'service', ...none };
    expect(await findShownApply(store, id)).to.deep.include({
      ...{ id, plan, error_details: null },
      changed: [[ofService], [ofService, { kind: 'endpoint', ...none, has_variables: true }]],
    });
    expect(await findShownApply(store, randomUUID())).to.equal(undefined);
  });

  it('keeps large and many changes of an apply in their order', async () => {
    const id = randomUUID();
    const large = Array.from({ length: 20 }, (_, at) => ({ at, code: `${at}`.padEnd(600_000, '\n') }));
    const small = Array.from({ length: 3_000 }, (_, at) => ({ at, code: null }));
    const changes = [...large, ...small] as never;
    await insertApply(store, {
      ...{ id, stack: 's', plan_hash: 'h', rollback_of: null, actor: null, rights: null, request_id: 'r' },
      ...{ plan: {}, changes, hosts: ['*'], no_wait: false },
    });
    expect((await findApply(store, id))?.changes).to.deep.equal(changes);
  });
});
