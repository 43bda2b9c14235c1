/** Which certificates are ordered, and by whom. */
import { expect } from 'chai';
import {
  claimOrder,
  type DueOrder,
  dueOrders,
  failOrder,
  findOrMakeAccount,
  retryOrder,
  saveOrdered,
  updateAccount,
} from '../../src/store/acme.js';
import {
  type AcmeChallenge,
  addChallenge,
  isAnswering,
  pendingChallenges,
} from '../../src/store/acme-challenges.js';
import { findCertificate, type NewCertificate, saveCertificate } from '../../src/store/certificates.js';
import type { Database } from '../../src/store/database.js';
import { createDomain, deleteDomain, findDomain, updateDomain } from '../../src/store/domains.js';
import { updateNodeInfo } from '../../src/store/nodes.js';
import { NO_ID } from '../support/expect.js';
import { addNode } from '../support/nodes.js';
import { useTestStore } from '../support/store.js';

const DIRECTORY = 'https://acme.example/directory';
const DAY = 24 * 3600 * 1000;
const LEASE_MS = 60_000;

describe('orders of certificates', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });
  beforeEach(async () => {
    for (const table of ['domains', 'nodes']) await store.knex(table).delete();
  });

  const add = async (host: string): Promise<string> =>
    (await createDomain(store, { name: host, host, description: null, enabled: true })).id;
  const due = (directory = DIRECTORY) => dueOrders(store, directory, 100);
  const dueHosts = async (directory = DIRECTORY): Promise<string[]> => {
    const ids = (await due(directory)).map(({ domain_id }) => domain_id);
    return store.knex('domains').whereIn('id', ids).orderBy('host').pluck('host');
  };
  const onlyDue = async (): Promise<DueOrder> => {
    const [order, ...others] = await due();
    expect(others).to.deep.equal([]);
    if (!order) throw new Error('Nothing is due.');
    return order;
  };
  /** @param left days that it lives on, of 90 */
  const certificate = (host: string, left: number, ordered_from: string | null = DIRECTORY) => ({
    ...{
      chain: 'PEM',
      key_encrypted: 'sealed',
      names: [host],
      issuer: 'i',
      fingerprint: String(left),
      ordered_from,
    },
    valid_from: new Date(Date.now() - (90 - left) * DAY),
    expires_at: new Date(Date.now() + left * DAY),
  });
  const save = async (host: string, left: number, ordered_from?: string | null): Promise<string> => {
    const domain_id = await add(host);
    await saveCertificate(store, {
      ...certificate(host, left, ordered_from),
      domain_id,
    } satisfies NewCertificate);
    return domain_id;
  };
  const orderOf = async (id: string) => (await findDomain(store, id))?.certificate_order;

  it('orders certificates for names in the internet only', async () => {
    for (const host of [
      'a.example',
      'xn--bcher-kva.example',
      'b.c.d.example',
      '10.0.0.1',
      'localhost',
      '1.2',
      'a.1',
    ])
      await add(host);
    expect(await dueHosts()).to.deep.equal(['a.example', 'b.c.d.example', 'xn--bcher-kva.example']);
  });

  it('orders a certificate with less than a third of its life left, for a new host or ACME directory', async () => {
    await save('much.example', 31);
    await save('little.example', 29);
    await save('over.example', -1);
    const renamed = await save('before.example', 80);
    await updateDomain(store, renamed, { host: 'renamed.example' });
    expect(await dueHosts()).to.deep.equal(['little.example', 'over.example', 'renamed.example']);
    expect(await dueHosts('https://other.example/')).to.include('much.example');
  });

  it('orders no certificate where a user has set one, and replaces none that is set meanwhile', async () => {
    await save('own.example', -1, null);
    expect(await dueHosts()).to.deep.equal([]);
    const id = await add('meanwhile.example');
    const claimed = await claimOrder(store, await onlyDue(), DIRECTORY, LEASE_MS);
    if (!claimed) throw new Error('It was not claimed.');
    await saveCertificate(store, { ...certificate('meanwhile.example', 1, null), domain_id: id });
    expect(await saveOrdered(store, claimed, certificate('meanwhile.example', 90))).to.equal(false);
    expect(await findCertificate(store, id)).to.include({ fingerprint: '1', ordered_from: null });
    expect(await orderOf(id)).to.equal(null);
  });

  it('lets only one worker claim an order of a certificate', async () => {
    const id = await add('a.example');
    const order = await onlyDue();
    expect(await orderOf(id)).to.include({ state: 'queued', tried_at: null, next_try_at: null });
    expect(await onlyDue(), 'the same, until it is claimed').to.deep.equal(order);
    const claims = await Promise.all([1, 2, 3].map(() => claimOrder(store, order, DIRECTORY, LEASE_MS)));
    expect(claims.filter((claimed) => claimed !== undefined)).to.have.length(1);
    expect(await orderOf(id)).to.include({ state: 'ordering', next_try_at: null });
    expect(await due()).to.deep.equal([]);
  });

  it('repeats an order of a certificate of a lost worker, whose result is then refused', async () => {
    const id = await add('a.example');
    const lost = await claimOrder(store, await onlyDue(), DIRECTORY, 0);
    const claimed = await claimOrder(store, await onlyDue(), DIRECTORY, LEASE_MS);
    if (!lost || !claimed) throw new Error('It was not claimed.');
    expect(await saveOrdered(store, lost, certificate('a.example', 90))).to.equal(false);
    await failOrder(store, lost, 'lost', 0);
    expect(await orderOf(id)).to.include({ state: 'ordering', error: null });
    expect(await saveOrdered(store, claimed, certificate('a.example', 90))).to.equal(true);
    expect(await orderOf(id)).to.include({ state: 'issued', error: null });
    expect(await findCertificate(store, id)).to.include({ ordered_from: DIRECTORY });
  });

  it('records why and how often an order of a certificate failed, and begins anew for another host', async () => {
    const id = await add('a.example');
    for (const failures of [0, 1, 2]) {
      const claimed = await claimOrder(store, await onlyDue(), DIRECTORY, LEASE_MS);
      expect(claimed).to.include({ failures });
      if (claimed) await failOrder(store, claimed, `failure ${failures}`, failures < 2 ? 0 : LEASE_MS);
    }
    expect(await orderOf(id)).to.include({ state: 'failed', error: 'failure 2' });
    expect((await orderOf(id))?.next_try_at).to.match(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/);
    expect(await due()).to.deep.equal([]);
    expect(await retryOrder(store, NO_ID)).to.equal(false);
    expect(await retryOrder(store, id)).to.equal(true);
    const again = await claimOrder(store, await onlyDue(), DIRECTORY, LEASE_MS);
    expect(again).to.include({ failures: 3 });
    expect(await retryOrder(store, id), 'what is being ordered is not disturbed').to.equal(true);
    expect(await due()).to.deep.equal([]);
    if (again) await failOrder(store, again, 'failure 3', LEASE_MS);
    await updateDomain(store, id, { host: 'b.example' });
    expect(await claimOrder(store, await onlyDue(), DIRECTORY, LEASE_MS)).to.include({
      host: 'b.example',
      failures: 0,
    });
  });

  it('refuses an ordered certificate whose domain was deleted or has another host', async () => {
    const ids = [await add('a.example'), await add('b.example')] as const;
    const claimed = await Promise.all(
      (await due()).map((order) => claimOrder(store, order, DIRECTORY, LEASE_MS)),
    );
    await deleteDomain(store, ids[0]);
    await updateDomain(store, ids[1], { host: 'c.example' });
    for (const order of claimed) {
      if (!order) throw new Error('It was not claimed.');
      expect(await saveOrdered(store, order, certificate(order.host, 90)), order.host).to.equal(false);
    }
    expect(await store.knex('certificates')).to.deep.equal([]);
  });

  it('makes one account for each ACME directory', async () => {
    const make = (key: string) => findOrMakeAccount(store, DIRECTORY, () => key);
    const made = await Promise.all(['one', 'two', 'three'].map(make));
    expect(new Set(made.map(({ key_encrypted }) => key_encrypted)).size).to.equal(1);
    await updateAccount(store, DIRECTORY, { url: 'https://acme.example/1', email: 'ada@example.com' });
    const found = await make('four');
    expect(found).to.include({ url: 'https://acme.example/1', key_encrypted: made[0]?.key_encrypted });
    expect((await findOrMakeAccount(store, `${DIRECTORY}/other`, () => 'five')).key_encrypted).to.equal(
      'five',
    );
  });

  it('counts a gateway as answering an ACME challenge when its row says so', async () => {
    const challenge: AcmeChallenge = {
      ...{ domain_id: await add('a.example'), host: 'a.example', answer: 'token.thumbprint' },
      ...{ token: 'token', type: 'http-01', chain: null, key_encrypted: null },
    };
    await addChallenge(store, challenge);
    expect(await pendingChallenges(store)).to.deep.equal([challenge]);
    expect(await isAnswering(store, NO_ID, 'token'), 'one that is gone').to.equal(true);
    await addNode(store, 'gateway', { id: NO_ID });
    expect(await isAnswering(store, NO_ID, 'token')).to.equal(false);
    for (const [challenges, expected] of [
      [['other'], false],
      [['other', 'token'], true],
    ] as const) {
      await updateNodeInfo(store, { id: NO_ID, info: { challenges } });
      expect(await isAnswering(store, NO_ID, 'token'), challenges.join()).to.equal(expected);
    }
    await store.knex('acme_challenges').update({ expires_at: new Date(Date.now() - DAY) });
    expect(await pendingChallenges(store)).to.deep.equal([]);
  });
});
