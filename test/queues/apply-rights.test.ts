/** Applies of somebody who has lost rights since they asked: they are not done. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ActiveJobs } from '../../jobs/active-jobs.js';
import type { ApplyContext } from '../../jobs/apply/context.js';
import { runApply } from '../../jobs/apply.js';
import { toError } from '../../src/errors.js';
import { requireRightsAsBefore } from '../../src/lifecycle/current-rights.js';
import type { AuditActor } from '../../src/model/actor.js';
import {
  ALL_RIGHTS,
  type Rights,
  rightsOfToken,
  rightsOfUser,
  storedRights,
} from '../../src/model/rights.js';
import { digestOf } from '../../src/secrets/credentials.js';
import { findApply } from '../../src/store/applies.js';
import type { Database } from '../../src/store/database.js';
import { insertApply } from '../../src/store/new-applies.js';
import { createToken, deleteToken, type NewToken } from '../../src/store/tokens.js';
import { createUser, deleteUser, type NewUser, type User, updateUser } from '../../src/store/users.js';
import type { TestLog } from '../support/log.js';
import { openTestStore } from '../support/store.js';

describe('rights of who has asked for an apply', () => {
  let store: Database;
  let logged: TestLog;
  let close: () => Promise<void>;
  const person = (user: Partial<NewUser>): NewUser => ({
    ...{ email: `${randomUUID()}@a.test`, name: 'A', password_hash: 'hash', role: 'editor', domains: [] },
    ...user,
  });
  before(async () => {
    ({ store, logged, close } = await openTestStore());
    await createUser(store, person({ role: 'admin' }));
  });
  after(() => close());

  const NO_KEY = { API_KEY: undefined };
  const byUser = ({ id, email }: User): AuditActor => ({ kind: 'user', id, email });
  const refusal = (
    actor: AuditActor,
    rights: Rights | null,
    settings: { API_KEY: string | undefined } = NO_KEY,
  ) =>
    requireRightsAsBefore(store, settings, {
      actor: { ...actor },
      rights: rights && storedRights(rights),
    }).then(
      () => undefined,
      (thrown: unknown) => toError(thrown).message,
    );
  const token = async (user: User | null, more: Partial<NewToken> = {}) => {
    const created = await createToken(store, {
      ...{ hash: randomUUID(), name: 'ci', user_id: user?.id ?? null, key_hash: null, expires_at: null },
      ...{ permissions: ['endpoints:write'], domains: [], ...more },
    });
    const actor: AuditActor = { kind: 'token', id: created.id, name: 'ci', user_id: created.user_id };
    return { actor, rights: rightsOfToken(created, user ? rightsOfUser(user) : ALL_RIGHTS) };
  };

  it('an apply is refused when its user has got another role, fewer hosts, or no account since', async () => {
    const user = await createUser(store, person({}));
    const [actor, rights] = [byUser(user), rightsOfUser(user)];
    expect(await refusal(actor, rights)).to.equal(undefined);
    await updateUser(store, user.id, { role: 'admin' });
    expect(await refusal(actor, rights)).to.equal(undefined);
    await updateUser(store, user.id, { role: 'viewer' });
    expect(await refusal(actor, rights)).to.match(
      new RegExp(`^The user ${user.email} .* lost rights since: the permissions .*endpoints:write`),
    );
    // A process of the version before did not say what they might do.
    expect(await refusal(actor, null)).to.equal(undefined);
    await updateUser(store, user.id, { role: 'editor', domains: ['a.example'] });
    expect(await refusal(actor, rights)).to.match(/lost rights since: hosts other than a\.example/);
    await deleteUser(store, user.id);
    for (const before of [rights, null])
      expect(await refusal(actor, before)).to.match(
        new RegExp(`^The user ${user.email} .* no longer has any permission`),
      );
  });

  it('an apply is refused when its token was revoked or has expired, or its maker may do less since', async () => {
    const user = await createUser(store, person({}));
    const { actor, rights } = await token(user);
    expect(await refusal(actor, rights)).to.equal(undefined);
    await updateUser(store, user.id, { role: 'viewer' });
    expect(await refusal(actor, rights)).to.match(
      /^The token "ci" .* lost rights since: the permissions endpoints:write/,
    );
    await deleteToken(store, 'id' in actor ? actor.id : '', undefined);
    expect(await refusal(actor, rights)).to.match(/^The token "ci" .* no longer has any permission/);
    const old = await token(user, { expires_at: new Date(0) });
    expect(await refusal(old.actor, old.rights)).to.match(/no longer has any permission/);
  });

  it('an apply is refused when its token is of another API_KEY, or the API is not open any more', async () => {
    const { actor, rights } = await token(null, { key_hash: digestOf('key') });
    expect(await refusal(actor, rights, { API_KEY: 'key' })).to.equal(undefined);
    expect(await refusal(actor, rights)).to.equal(undefined);
    expect(await refusal(actor, rights, { API_KEY: 'other' })).to.match(/no longer has any permission/);
    expect(await refusal({ kind: 'api_key' }, ALL_RIGHTS)).to.equal(undefined);
    // There are users.
    expect(await refusal({ kind: 'anonymous', address: '127.0.0.1' }, ALL_RIGHTS)).to.match(
      /^Somebody at 127\.0\.0\.1 .* no longer has any permission/,
    );
  });

  const insert = async (actor: AuditActor | null, rights: Rights | null) => {
    const id = randomUUID();
    await insertApply(store, {
      ...{ id, stack: 's', plan_hash: '', rollback_of: null, actor: actor && { ...actor } },
      rights: rights && storedRights(rights),
      ...{ request_id: 'r', plan: {}, changes: [], hosts: [], no_wait: false },
    });
    return id;
  };
  /** @param whileItWaits is done before it has its turn */
  const run = async (applyId: string, whileItWaits: () => Promise<unknown>) => {
    const waitFor = async (...[, , , read]: [unknown, unknown, unknown, () => Promise<unknown>]) => {
      await whileItWaits();
      return read();
    };
    const context = {
      ...{ log: logged.log, workerId: randomUUID(), activeJobs: new ActiveJobs(), config: NO_KEY },
      ...{ gateways: { nodes: async () => [] }, lifecycle: { store, changes: { waitFor } } },
    } as unknown as ApplyContext;
    const ended = runApply({ applyId, attempt: 1, requestId: 'r' }, context, new AbortController().signal);
    await ended.catch(() => undefined);
    return findApply(store, applyId);
  };

  it('an apply is not begun when who has asked for it has lost rights since', async () => {
    const user = await createUser(store, person({}));
    const id = await insert(byUser(user), rightsOfUser(user));
    await updateUser(store, user.id, { role: 'viewer' });
    const never = () => Promise.reject(new Error('it waited'));
    expect(await run(id, never)).to.include({ state: 'failed', error_code: 'forbidden', committed_at: null });
  });

  it('an apply starts no handler, and changes nothing, when who has asked for it loses rights while it waits for its turn', async () => {
    const states = new Set<unknown>();
    const note = ({ bindings = [] }: { readonly bindings?: readonly unknown[] }) => {
      for (const value of bindings) states.add(value);
    };
    const user = await createUser(store, person({}));
    for (const isKept of [true, false]) {
      const holder = await insert(null, null);
      const turn = { state: 'converging', turn_at: store.knex.raw('clock_timestamp()') };
      await store.knex('applies').where({ id: holder }).update(turn);
      const id = await insert(byUser(user), rightsOfUser(user));
      states.clear();
      store.knex.on('query', note);
      const apply = await run(id, async () => {
        if (!isKept) await deleteUser(store, user.id);
        await store.knex('applies').where({ id: holder }).delete();
      });
      store.knex.off('query', note);
      expect(states.has('waiting')).to.equal(true);
      expect(states.has('preparing')).to.equal(isKept);
      expect(apply).to.include(
        isKept
          ? { error_code: null, error: null }
          : { state: 'failed', error_code: 'forbidden', committed_at: null },
      );
      await store.knex('applies').delete();
    }
  });
});
