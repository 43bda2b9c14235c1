/** Locks of sources over the API, without anybody who compiles: what is kept, shown, compared and refused. */
import { createHash } from 'node:crypto';
import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import type { EndpointView, ListedEndpoint } from '../../src/api/endpoints/endpoints.schema.js';
import type { VersionDiff, VersionView } from '../../src/api/lifecycle/versions.schema.js';
import type { FileContents } from '../../src/model/source-files.js';
import { sourceKey } from '../../src/model/source-key.js';
import { findEndpoint } from '../../src/store/endpoints.js';
import { dropUnusedSourceFiles, keepLock } from '../../src/store/source-files.js';
import { addVersions } from '../../src/store/versions.js';
import { startApi, type TestApi } from '../support/api.js';
import { planOf } from '../support/applies.js';
import { expectData, expectFailure, NO_ID } from '../support/expect.js';
import { multipart } from '../support/form.js';
import { lockOf } from '../support/locks.js';
import { zipOf } from '../support/zip.js';

type Endpoint = Static<typeof EndpointView>;
type Version = Static<typeof VersionView>;

const LOCK = lockOf({ uuid: '1.17.0' });
const NEWER = lockOf({ uuid: '1.18.0', rand: '0.9.1' });

describe('the lock of a source', () => {
  let api: TestApi;
  let count = 0;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  const create = async (more: object = {}): Promise<Endpoint> => {
    const path = `/locks/${++count}`;
    const endpoint = { name: path, path, method: 'GET', domain: '*', code: '// x', ...more };
    return expectData<Endpoint>(await api.post('/api/endpoints', endpoint), 201);
  };
  const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
  const stored = async (text: string) =>
    (await api.store.knex('source_files').where({ digest: digestOf(text) })).length;
  /** A version as a worker would have made it of the draft. */
  const compiled = async (id: string, lock: string | null) => {
    const draft = (await findEndpoint(api.store, id)) ?? expect.fail('gone');
    const { code, dependencies, edition, entry, files, lock: own } = draft;
    const [added] = await addVersions(api.store, [id], {
      ...{ code: code ?? '', dependencies: dependencies ?? {}, edition, entry, files, lock: own },
      ...{ sourceKey: sourceKey(draft), artifact: digestOf(`${lock}`), actor: null },
      resolvedLock: lock === null ? null : await keepLock(api.store, lock),
    });
    return added?.version;
  };

  it('keeps the lock of an endpoint, shows its text, and in lists its digest', async () => {
    const { id, lock } = await create({ lock: LOCK });
    expect(lock).to.equal(LOCK);
    const path = `/api/endpoints/${id}`;
    expect(expectData<Endpoint>(await api.get(path)).lock).to.equal(LOCK);
    const list = expectData<Static<typeof ListedEndpoint>[]>(await api.get('/api/endpoints?limit=1000'));
    const listed = list.find((one) => one.id === id)?.lock;
    expect(listed).to.deep.equal({ digest: digestOf(LOCK), size: LOCK.length });
    expect(expectData<Endpoint>(await api.put(path, { code: '// y' })).lock).to.equal(LOCK);
    expect(expectData<Endpoint>(await api.put(path, { lock: null })).lock).to.equal(null);
  });

  it('changes the source key with the lock', async () => {
    const { id } = await create();
    const keyNow = async () => (await findEndpoint(api.store, id))?.source_key;
    const keys = [await keyNow()];
    for (const lock of [LOCK, NEWER, null]) {
      await api.put(`/api/endpoints/${id}`, { lock });
      keys.push(await keyNow());
    }
    expect(new Set(keys).size).to.equal(3);
    expect(keys[3]).to.equal(keys[0]);
  });

  it('refuses what is no lock, with the line, and stores nothing of it', async () => {
    const { id } = await create();
    const wrong = `${lockOf({ refused: '1.0.0' })}oops\n`;
    const message =
      /^body\.lock: must be a Cargo\.lock as cargo writes it, which line \d+ is not of: "oops"$/;
    for (const refused of [
      api.put(`/api/endpoints/${id}`, { lock: wrong }),
      api.post(`/api/endpoints/${id}/deploy`, { lock: wrong }),
    ])
      expectFailure(await refused, 'invalid_input', message);
    const other = lockOf({ elsewhere: '1.0.0' });
    expectFailure(await api.put(`/api/endpoints/${NO_ID}`, { lock: other }), 'not_found');
    expect([await stored(wrong), await stored(other)]).to.deep.equal([0, 0]);
  });

  it('refuses to update crates that a lock holds, and crates that there are not', async () => {
    const { id } = await create({ lock: LOCK, dependencies: { uuid: '1' } });
    const compile = (body: object) => api.post(`/api/endpoints/${id}/compile`, body);
    expectFailure(await compile({ update: true }), 'invalid_input', /^body\.update: the source has a lock/);
    await api.put(`/api/endpoints/${id}`, { lock: null });
    await compiled(id, LOCK);
    const unknown = /^body\.update: there is no crate "rand" in the lock of version 1$/;
    expectFailure(await compile({ update: ['rand'] }), 'invalid_input', unknown);
    for (const update of ['uuid', ['a b'], [], 1])
      expectFailure(await compile({ update }), 'invalid_input', /^body\.update/);
  });

  it('shows the lock that a version was built with, null where it is not known, and compares crates', async () => {
    const { id } = await create({ dependencies: { uuid: '1' } });
    expect(await compiled(id, null)).to.equal(1);
    // It is of the same source; what its crates are is known now.
    expect(await compiled(id, LOCK)).to.equal(1);
    expect(await compiled(id, NEWER)).to.equal(2);
    await api.put(`/api/endpoints/${id}`, { edition: '2024', lock: LOCK });
    expect(await compiled(id, LOCK)).to.equal(3);
    const version = async (number: number) =>
      expectData<Version>(await api.get(`/api/endpoints/${id}/versions/${number}`));
    expect(await version(1)).to.deep.include({ lock: LOCK, edition: '2021' });
    expect((await version(2)).lock).to.equal(NEWER);
    expect(await version(3)).to.deep.include({ lock: LOCK, edition: '2024' });
    const diff = async (from: number, to: number) =>
      expectData<Static<typeof VersionDiff>>(
        await api.get(`/api/endpoints/${id}/versions/${from}/diff?to=${to}`),
      );
    const updated = await diff(1, 2);
    expect(updated.crates).to.deep.equal([
      { name: 'rand', from: null, to: '0.9.1' },
      { name: 'uuid', from: '1.17.0', to: '1.18.0' },
    ]);
    expect(updated.diff).to.equal(
      'The crate rand 0.9.1 is only in version 2.\nThe crate uuid is 1.17.0 in version 1, and 1.18.0 in version 2.\n',
    );
    const third = await diff(1, 3);
    expect(third.crates).to.deep.equal([]);
    expect(third.diff).to.equal('The edition is 2021 in version 1, and 2024 in version 3.\n');
    const old = await create({ dependencies: { uuid: '1' } });
    await compiled(old.id, null);
    expect(expectData<Version>(await api.get(`/api/endpoints/${old.id}/versions/1`)).lock).to.equal(null);
  });

  it('deletes locks that nothing has had for an hour, and none of a version', async () => {
    const [own, built, lost] = ['own', 'built', 'lost'].map((name) => lockOf({ [name]: '1.0.0' })) as [
      string,
      string,
      string,
    ];
    const { id } = await create({ lock: own, dependencies: { a: '1' } });
    await compiled(id, built);
    await keepLock(api.store, lost);
    for (let round = 0; round < 2; round++) {
      await dropUnusedSourceFiles(api.store);
      await api.store.knex.raw("UPDATE source_files SET unused_since = unused_since - interval '61 minutes'");
    }
    await dropUnusedSourceFiles(api.store);
    expect(await Promise.all([own, built, lost].map(stored))).to.deep.equal([1, 1, 0]);
  });

  it('says in the audit that the lock and the edition were changed', async () => {
    const { id } = await create();
    await api.put(`/api/endpoints/${id}`, { lock: LOCK, edition: '2024' });
    const [entry] = expectData<{ before: object; after: object }[]>(
      await api.get(`/api/audit?object_id=${id}&limit=1`),
    );
    expect(entry?.before).to.deep.include({ lock: null, edition: null });
    expect(entry?.after).to.deep.include({
      lock: { digest: digestOf(LOCK), size: LOCK.length },
      edition: '2024',
    });
  });

  it('exports locks and editions as a folder that changes nothing when it is applied', async () => {
    const host = 'locked.example';
    expectData(await api.post('/api/domains', { name: host, host, stack: 'locked' }), 201);
    const on = { domain: host, stack: 'locked', dependencies: { uuid: '1' } };
    await create({ ...on, lock: LOCK, edition: '2024' });
    await create({ ...on, lock: LOCK, entry: 'src/a.rs', files: { 'src/b.rs': '// b' } });
    await create({ ...on, lock: NEWER });
    await create({ ...on, files: { 'Cargo.lock': 'of its own' } });
    const { files } = expectData<{ files: FileContents }>(await api.get(`/api/export?domain=${host}`));
    expect(files).to.include({ 'Cargo.lock': LOCK, 'Cargo-2.lock': NEWER });
    expect((await planOf(api, files)).changes).to.deep.equal([]);
    const fieldsOf = async (changed: FileContents) =>
      (await planOf(api, { ...files, ...changed })).changes.flatMap(({ fields }) => fields);
    const field = { path: 'lock', before: `sha256:${digestOf(NEWER)}`, after: `sha256:${digestOf(LOCK)}` };
    expect(await fieldsOf({ 'Cargo-2.lock': LOCK })).to.deep.equal([field]);
    const plan = (changed: FileContents) =>
      api.post('/api/apply?dry_run=true', { files: { ...files, ...changed } });
    const wrong = /Cargo-2\.lock must be a Cargo\.lock as cargo writes it, which line 1 is not of: "no lock"/;
    expectFailure(await plan({ 'Cargo-2.lock': 'no lock' }), 'invalid_folder', wrong);
    const edge = String(files['edge.yaml']).replace('Cargo-2.lock', 'gone.lock');
    const gone = /there is no file gone\.lock in the folder, which is to be its lock/;
    expectFailure(await plan({ 'edge.yaml': edge }), 'invalid_folder', gone);
  });

  it('refuses crates of hosts that the operator does not allow in a folder and in a bundle, too', async () => {
    const rev = '0'.repeat(40);
    const dependencies = { x: { git: 'https://git.example/x', rev } };
    const host = 'crates.example';
    const endpoint = { host, method: 'GET', route: '/', handler: 'x.rs', dependencies };
    const edge = { stack: 'crates', domains: [{ host }], endpoints: [endpoint] };
    const files = { 'edge.yaml': JSON.stringify(edge), 'x.rs': '// x' };
    const refused = await api.post('/api/apply?dry_run=true', { files });
    const message = /dependencies\.x\.git: is not of a host that the operator allows/;
    expectFailure(refused, 'invalid_folder', new RegExp(`edge\\.yaml:1: .*${message.source}`));
    const routes = [{ method: 'GET', path: '/', handler: 'x' }];
    const manifest = JSON.stringify({ dependencies, routes });
    const content = zipOf({ 'bundle.yaml': manifest, 'handlers/x.rs': '// x' });
    const { body, headers } = multipart([{ name: 'bundle', filename: 'a.zip', content }]);
    for (const dryRun of ['', '&dry_run=true']) {
      const bundle = await api.post(`/api/import/bundle?domain=${host}${dryRun}`, body, { headers });
      expectFailure(bundle, 'invalid_dependency', message);
    }
    const { id } = await create();
    expectFailure(
      await api.post(`/api/endpoints/${id}/deploy`, { dependencies }),
      'invalid_dependency',
      message,
    );
    // What was allowed once is not built any more.
    await api.store
      .knex('endpoints')
      .where({ id })
      .update({ dependencies: JSON.stringify(dependencies) });
    expectFailure(await api.post(`/api/endpoints/${id}/compile`), 'invalid_dependency', message);
  });
});
