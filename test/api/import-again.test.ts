/** Importing an API again after it has changed: what is replaced, what is kept, and what is said about it. */
import { expect } from 'chai';
import { ONE_FILE } from '../../src/model/source-files.js';
import type { ImportToApply } from '../../src/store/apply-import.js';
import type { Database } from '../../src/store/database.js';
import { findEndpoint, updateEndpoint } from '../../src/store/endpoints.js';
import { EMPTY_API, storeImport } from '../support/imports.js';
import { openTestStore, type TestStore } from '../support/store.js';

type Change = Partial<Omit<ImportToApply, 'endpoints'>>;

describe('importing again', () => {
  let opened: TestStore;
  let store: Database;
  let domain: string;
  let count = 0;

  before(async () => {
    opened = await openTestStore();
    ({ store } = opened);
  });
  after(() => opened.close());
  beforeEach(() => {
    domain = `again${++count}.example`;
  });

  /** @param handlers the code of each operation, null for one without handler */
  const apiOf = (handlers: Readonly<Record<string, string | null>>, change: Change = {}): ImportToApply => ({
    ...EMPTY_API,
    ...change,
    endpoints: Object.entries(handlers).map(([name, code]) => ({
      name,
      method: 'GET',
      path: `/${name}`,
      description: null,
      generatedCode: '// generated',
      handler: code === null ? null : { file: `${name}.rs`, code, ...ONE_FILE },
    })),
  });
  const place = () => ({ domain, domainId: null, collectionId: null, createCollection: false });
  const importDocument = (handlers: Readonly<Record<string, string | null>>, change?: Change) =>
    storeImport(store, place(), apiOf(handlers, change));
  const importBundle = (handlers: Readonly<Record<string, string | null>>, change?: Change) =>
    storeImport(store, place(), apiOf(handlers, { kind: 'bundle', ...change }));

  describe('operations that a later import has lost', () => {
    it('an import names lost operations, also when the title has changed', async () => {
      await importDocument({ a: null, b: null, c: null });
      const { warnings } = await importDocument({ a: null, c: null }, { title: 'Animals' });
      expect(warnings).to.have.length(1);
      expect(warnings[0]).to.match(/^The endpoint "b" \(GET \/b, .*\) is no longer in the document/);
    });

    it('an import names no operations of another API as lost', async () => {
      await importDocument({ other: null }, { title: 'Other' });
      await importDocument({ a: null });
      const { warnings } = await importDocument({ a: null }, { title: 'Animals' });
      expect(warnings).to.deep.equal([]);
    });
  });

  it('an import keeps the limits of its endpoints', async () => {
    const limits = { memory_mb: 64, concurrent_requests: 3 };
    const { endpoints } = await importBundle({ a: '// a' });
    const id = endpoints[0]?.id ?? '';
    await updateEndpoint(store, id, { limits });
    await importBundle({ a: '// another a' });
    expect(await findEndpoint(store, id)).to.deep.include({ code: '// another a', limits });
  });

  describe('code that a handler replaces', () => {
    const replacement = async (handlers: Readonly<Record<string, string>>) =>
      (await importBundle(handlers)).warnings;

    it('an import warns of a handler that replaces code of a user', async () => {
      const { endpoints } = await importBundle({ a: '// brought' });
      await updateEndpoint(store, endpoints[0]?.id ?? '', { code: '// by hand' });
      expect(await replacement({ a: '// new' })).to.deep.equal([
        'a had code that no import had brought; a.rs has taken its place',
      ]);
    });

    it('an import does not warn of a handler that replaces imported, generated or equal code', async () => {
      await importDocument({ a: null });
      expect(await replacement({ a: '// 1' }), 'generated').to.deep.equal([]);
      expect(await replacement({ a: '// 2' }), 'brought').to.deep.equal([]);
      const { endpoints } = await importBundle({ a: '// 2' });
      await updateEndpoint(store, endpoints[0]?.id ?? '', { code: '// 3' });
      expect(await replacement({ a: '// 3' }), 'the same').to.deep.equal([]);
    });
  });

  it('an import keeps the description of an endpoint when the document has none', async () => {
    const { endpoints } = await importDocument({ a: null });
    const id = endpoints[0]?.id ?? '';
    await updateEndpoint(store, id, { description: 'by hand' });
    await importDocument({ a: null });
    expect((await findEndpoint(store, id))?.description).to.equal('by hand');
  });

  describe('dependencies of imported endpoints', () => {
    const serde = { serde_json: '1' };
    const dependenciesOf = async (id: string | undefined) =>
      (await findEndpoint(store, id ?? ''))?.dependencies;

    it('an import sets dependencies as in the manifest, and keeps them when it has none', async () => {
      const first = await importBundle({ a: '// 1', b: null }, { dependencies: { ...serde, rand: '0.8' } });
      const [a, b] = first.endpoints.map(({ id }) => id);
      expect(await dependenciesOf(a)).to.deep.equal({ ...serde, rand: '0.8' });
      expect(await dependenciesOf(b)).to.equal(null);
      const before = await findEndpoint(store, a ?? '');
      await importBundle({ a: '// 1' }, { dependencies: null });
      expect(await findEndpoint(store, a ?? ''), 'nothing said').to.deep.equal(before);
      await importBundle({ a: '// 1' }, { dependencies: serde });
      expect(await dependenciesOf(a)).to.deep.equal(serde);
      await importBundle({ a: '// 1' }, { dependencies: {} });
      const after = await findEndpoint(store, a ?? '');
      expect(after?.dependencies).to.equal(null);
      expect(after?.source_key).not.to.equal(before?.source_key);
    });

    it('an import keeps the dependencies of an endpoint for which it has no handler', async () => {
      const { endpoints } = await importBundle({ a: '// 1' }, { dependencies: serde });
      await importBundle({ a: null }, { dependencies: {} });
      expect(await dependenciesOf(endpoints[0]?.id)).to.deep.equal(serde);
    });
  });

  describe('operations of a bundle without a handler', () => {
    it('an import says which operations have no handler, and which code answers there', async () => {
      const first = await importBundle({ a: '// mine', b: null, c: null, d: '// d' });
      expect(first.warnings).to.deep.equal([
        'b has no handler in the bundle; a generated one answers 501',
        'c has no handler in the bundle; a generated one answers 501',
      ]);
      const c = first.endpoints.find(({ name }) => name === 'c');
      await updateEndpoint(store, c?.id ?? '', { code: '// written since' });
      const second = await importBundle({ a: null, b: null, c: null, d: '// d' });
      expect(second.warnings).to.deep.equal([
        'a has no handler in the bundle and keeps the code it has',
        'b has no handler in the bundle; a generated one answers 501',
        'c has no handler in the bundle and keeps the code it has',
      ]);
      const codes = await Promise.all(
        first.endpoints.map(async ({ id }) => (await findEndpoint(store, id))?.code),
      );
      expect(codes).to.deep.equal(['// mine', '// generated', '// written since', '// d']);
    });

    it('an import of a document does not warn of operations without a handler', async () => {
      expect((await importDocument({ a: null })).warnings).to.deep.equal([]);
    });

    it('an import names all operations without a handler, however many they are', async () => {
      const names = Array.from({ length: 53 }, (_, number) => [`n${number}`, null]);
      const { warnings, warning_kinds } = await importBundle(Object.fromEntries(names));
      expect(warnings).to.have.length(53);
      expect(warnings.at(-1)).to.match(/^n52 /);
      expect(new Set(warning_kinds)).to.deep.equal(new Set(['unhandled']));
    });
  });
});
