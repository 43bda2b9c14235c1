/** That runners follow their rows, whatever gets lost on the way. */
import { expect } from 'chai';
import { Changes } from '../../src/reconcile/changes.js';
import { Reconciler, type Runner, type VersionedRow } from '../../src/reconcile/reconciler.js';
import { KnownRowsDigest } from '../../src/reconcile/rows-digest.js';
import { readRowsDigest } from '../../src/store/rows-digest.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';
import { openTestStore, type TestStore } from '../support/store.js';

interface Row extends VersionedRow {
  readonly name: string;
}

/** Records its calls. */
class NotingRunner implements Runner {
  readonly notes: string[] = [];
  /** Its `stop` without a limit waits for this. */
  drained: Promise<void> = Promise.resolve();

  saveAgain(): void {
    this.notes.push('save again');
  }

  retryUnsaved(): void {
    this.notes.push('retry');
  }

  async stop(limitMs?: number): Promise<void> {
    this.notes.push(`stop ${limitMs}`);
    if (limitMs === undefined) await this.drained;
  }
}

describe('reconciler', () => {
  let opened: TestStore;
  let changes: Changes;
  let reconciler: Reconciler<Row, NotingRunner>;
  let applied: string[];
  let applyFails: boolean;
  let renew: () => Promise<void>;

  before(async () => {
    opened = await openTestStore();
  });
  after(() => opened.close());

  const services = () => opened.store.knex<Row>('services');
  const addService = async (name: string) => {
    const row = { name, service_type: 'redis', config_encrypted: '' };
    const [added] = await opened.store.knex('services').insert(row).returning<{ id: string }[]>('id');
    return added?.id ?? '';
  };
  const runner = () => reconciler.runners.values().next().value ?? new NotingRunner();

  beforeEach(async () => {
    await services().delete();
    applied = [];
    applyFails = false;
    renew = () => Promise.resolve();
    changes = new Changes(opened.databaseUrl, ['service'], createTestLog().log);
    reconciler = new Reconciler<Row, NotingRunner>({
      changes,
      topic: 'service',
      renew: () => renew(),
      readVersions: () => services().select('id', 'version'),
      readRows: (ids) => services().whereIn('id', ids),
      apply: async (batch) => {
        if (applyFails) throw new Error('not now');
        for (const { id, before, after } of batch) {
          applied.push(`${before?.name} -> ${after?.name}`);
          if (!after) void reconciler.remove(id);
          else if (!reconciler.runners.has(id)) reconciler.runners.set(id, new NotingRunner());
        }
      },
      log: createTestLog().log,
    });
    // Its first resync is the one of the new connection.
    await eventually(() => expect(reconciler.isSynced).to.equal(true));
  });
  afterEach(async () => {
    await reconciler.stop(0);
    await changes.stop();
  });

  it('reads rows that are announced', async () => {
    const id = await addService('a');
    opened.store.announce('service', id);
    await eventually(() => expect(applied).to.deep.equal(['undefined -> a']));
    await services().where({ id }).delete();
    opened.store.announce('service', id);
    await eventually(() => expect(applied).to.deep.equal(['undefined -> a', 'a -> undefined']));
  });

  it('reads no rows before its node is known to be alive', async () => {
    renew = () => Promise.reject(new Error('no database'));
    const id = await addService('a');
    expect(await reconciler.resync().catch(String)).to.equal('Error: no database');
    renew = async () => {
      await services().where({ id }).update({ name: 'b', version: 2 });
    };
    await reconciler.resync();
    expect(applied).to.deep.equal(['undefined -> b']);
  });

  it('finds rows whose announcements were lost, by their versions', async () => {
    const id = await addService('a');
    await addService('same');
    await reconciler.resync();
    expect(applied.splice(0)).to.have.members(['undefined -> a', 'undefined -> same']);
    await services().where({ id }).update({ name: 'b', version: 2 });
    await reconciler.resync();
    expect(applied.splice(0)).to.deep.equal(['a -> b']);
    await services().where({ id }).delete();
    await reconciler.resync();
    expect(applied).to.deep.equal(['b -> undefined']);
  });

  it('computes a digest of rows that is equal only when no row has changed', async () => {
    const store = opened.store;
    const known = new KnownRowsDigest();
    const isEqual = async () => known.equals(await readRowsDigest(store, 'services'));
    expect(await isEqual()).to.equal(true);
    const ids = [await addService('a'), await addService('b')];
    expect(await isEqual()).to.equal(false);
    for (const id of ids) known.add(id, 1);
    expect(await isEqual()).to.equal(true);
    await services()
      .where({ id: ids[0] ?? '' })
      .update({ version: 100_000_000 });
    expect(await isEqual()).to.equal(false);
    known.remove(ids[0] ?? '', 1);
    known.add(ids[0] ?? '', 100_000_000);
    expect(await isEqual()).to.equal(true);
    await services()
      .where({ id: ids[1] ?? '' })
      .delete();
    expect(await isEqual()).to.equal(false);
    known.remove(ids[1] ?? '', 1);
    expect(await isEqual()).to.equal(true);
  });

  it('applies the same change again when it could not be applied', async () => {
    const failAndRetry = async () => {
      applyFails = true;
      const failure = await reconciler.resync().catch((thrown: unknown) => thrown);
      expect(failure).to.have.property('message', 'not now');
      applyFails = false;
      await reconciler.resync();
      return applied.splice(0);
    };
    const id = await addService('a');
    expect(await failAndRetry()).to.deep.equal(['undefined -> a']);
    expect(reconciler.rows.get(id)?.version).to.equal(1);
    await services().where({ id }).update({ name: 'b', version: 2 });
    expect(await failAndRetry()).to.deep.equal(['a -> b']);
    await services().where({ id }).delete();
    expect(await failAndRetry()).to.deep.equal(['b -> undefined']);
    expect(reconciler.rows.has(id)).to.equal(false);
  });

  it('saves unsaved observations with every resync, and all of them when they were deleted', async () => {
    await addService('a');
    await reconciler.resync();
    await reconciler.resync();
    reconciler.saveAgain();
    expect(runner().notes).to.deep.equal(['retry', 'save again']);
  });

  it('waits for the runners of deleted rows too when the reconciler stops, with a limit', async () => {
    const id = await addService('a');
    await reconciler.resync();
    const [leaving] = reconciler.runners.values();
    if (!leaving) throw new Error('no runner');
    leaving.drained = new Promise(() => undefined);
    await services().where({ id }).delete();
    await reconciler.resync();
    expect([...reconciler.runners.keys()]).to.deep.equal([]);
    await reconciler.stop(50);
    expect(leaving.notes).to.deep.equal(['retry', 'stop undefined', 'stop 50']);
  });
});
