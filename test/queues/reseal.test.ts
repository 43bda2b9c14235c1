/** All encrypted values are encrypted again with the present key, whatever happens at the same time. */
import { expect } from 'chai';
import { Reseal } from '../../jobs/reseal.js';
import { createSecretBox, type SecretBox, sealedPrefix } from '../../src/secrets/secret-box.js';
import type { Database } from '../../src/store/database.js';
import { putInstallationSecret } from '../../src/store/installation-secrets.js';
import type { NodeKind } from '../../src/store/nodes.js';
import { countSealedOtherwise, replaceSealed, SEALED_COLUMNS } from '../../src/store/sealed-values.js';
import { createService } from '../../src/store/services.js';
import { putSecret } from '../../src/store/variables.js';
import { createTestLog } from '../support/log.js';
import { addNode } from '../support/nodes.js';
import { ORIGIN } from '../support/origin.js';
import { useTestStore } from '../support/store.js';

const OLD = 'the old key of them all';
const NEW = 'the new key of them all';
/** More than a batch. */
const VALUES = 12;
const BATCH = 5;

describe('encryption with a new key', () => {
  const [old, both, fresh] = [createSecretBox(OLD), createSecretBox(NEW, [OLD]), createSecretBox(NEW)];
  const prefix = sealedPrefix(fresh.keyIds[0]);
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });
  beforeEach(async () => {
    for (const table of ['services', 'installation_secrets', 'domains', 'nodes'])
      await store.knex(table).delete();
  });

  /** Values in every column, sealed by a box. */
  async function fill(box: SecretBox): Promise<void> {
    const [domain] = await store.knex('domains').insert({ name: 'D', host: 'd.example' }).returning('id');
    for (let at = 0; at < VALUES; at++) {
      await putInstallationSecret(store, `SECRET_${at}`, box.seal(`secret ${at}`), ORIGIN.actor);
      await putSecret(
        store,
        { scope: 'domain', id: domain.id },
        { name: `SECRET_${at}`, value: `variable ${at}`, seal: box.seal },
        ORIGIN.actor,
      );
      const config_encrypted = box.seal(JSON.stringify({ host: `host ${at}` }));
      const service = {
        name: `S${at}`,
        service_type: 'redis',
        config_encrypted,
        enabled: true,
        domains: [],
      } as const;
      await createService(store, service, []);
    }
    await store.knex('variables').insert({ domain_id: domain.id, name: 'PLAIN', value: 'plain' });
  }

  /** All rows, without what is encrypted; and what it is, opened. */
  async function state(box: SecretBox) {
    const [rows, opened]: [unknown[], string[]] = [[], []];
    for (const { table, column } of SEALED_COLUMNS) {
      for (const { [column]: sealed, ...row } of await store.knex(table)) {
        rows.push(row);
        if (sealed !== null) opened.push(box.open(sealed));
      }
    }
    const byText = (left: unknown, right: unknown) => (JSON.stringify(left) < JSON.stringify(right) ? -1 : 1);
    return { rows: rows.sort(byText), opened: opened.sort() };
  }

  function job(box = both) {
    const logged = createTestLog();
    return { reseal: new Reseal(store, box, logged.log, BATCH), lines: logged.lines };
  }
  const node = (kind: NodeKind, keys?: readonly string[]) =>
    addNode(store, kind, { info: { ...(keys && { keys }) } });

  it('knows every column of the database with encrypted values', async () => {
    const columns = await store
      .knex('information_schema.columns')
      .where({ table_schema: 'public' })
      .whereRaw("column_name LIKE '%encrypted%' OR column_name = 'sealed'")
      .select('table_name', 'column_name');
    const found = columns.map(({ table_name, column_name }) => ({ table: table_name, column: column_name }));
    expect(SEALED_COLUMNS).to.have.deep.members(found);
  });

  it('encrypts all values with the new key, in batches, changes nothing else, and logs its progress', async () => {
    await fill(old);
    const before = await state(old);
    expect(await countSealedOtherwise(store, prefix)).to.equal(3 * VALUES);
    const { reseal, lines } = job();
    await reseal.run();
    expect(await countSealedOtherwise(store, prefix)).to.equal(0);
    // With the new key alone; neither versions nor times have changed, so nothing is restarted.
    expect(await state(fresh)).to.deep.equal(before);
    expect(lines[0]).to.include({ left: 3 * VALUES });
    const progress = lines.filter(({ table }) => table === 'services').map(({ done }) => done);
    expect(progress).to.deep.equal([5, 10, 12]);
    expect(lines.at(-1)?.msg).to.match(/SECRET_KEY_PREVIOUS can be removed/);
  });

  it('changes nothing more when several workers repeat an encryption with a new key', async () => {
    await fill(old);
    const before = await state(old);
    await Promise.all([job().reseal.run(), job().reseal.run(), job().reseal.run()]);
    expect(await state(fresh)).to.deep.equal(before);
    const { reseal, lines } = job();
    const stored = await store.knex('services').orderBy('id');
    await reseal.run();
    await reseal.run();
    expect(await store.knex('services').orderBy('id')).to.deep.equal(stored);
    expect(lines.map(({ msg }) => msg)).to.have.length(1);
  });

  it('encrypts with the new key even values that do not name their key', async () => {
    await fill(old);
    const [service] = await store.knex('services').limit(1);
    const unnamed = service.config_encrypted.replace(/^v2:\w+:/, 'v1:');
    await store.knex('services').where({ id: service.id }).update({ config_encrypted: unnamed });
    const before = await state(both);
    await job().reseal.run();
    expect(await state(fresh)).to.deep.equal(before);
  });

  it('overwrites no secret that is changed during an encryption with a new key', async () => {
    await fill(old);
    const [column] = SEALED_COLUMNS.filter(({ table }) => table === 'installation_secrets');
    const [secret] = await store.knex('installation_secrets').limit(1);
    const before = secret.value_encrypted;
    await putInstallationSecret(store, secret.name, fresh.seal('changed meanwhile'), ORIGIN.actor);
    expect(
      await replaceSealed(store, column ?? expect.fail(), [{ before, after: fresh.seal('stale') }]),
    ).to.equal(0);

    let runs = 0;
    const changing = (async () => {
      for (; runs < 50; runs++)
        await putInstallationSecret(store, 'SECRET_0', both.seal(`turn ${runs}`), ORIGIN.actor);
    })();
    while (runs < 50) await job().reseal.run();
    await changing;
    const opened = await store.knex('installation_secrets').where({ name: 'SECRET_0' }).first();
    expect(fresh.open(opened.value_encrypted)).to.equal('turn 49');
  });

  it('leaves encrypted values that no key opens as they are, and says so', async () => {
    await fill(old);
    const foreign = createSecretBox('a key that is lost').seal('x');
    await putInstallationSecret(store, 'SECRET_3', foreign, ORIGIN.actor);
    const { reseal, lines } = job();
    await reseal.run();
    expect(await countSealedOtherwise(store, prefix)).to.equal(1);
    const { value_encrypted } = await store.knex('installation_secrets').where({ name: 'SECRET_3' }).first();
    expect(value_encrypted).to.equal(foreign);
    expect(lines.at(-1)).to.include({ level: 40, unreadable: 1 });
    expect(JSON.stringify(lines)).not.to.match(/can be removed/);
  });

  it('encrypts nothing with a new key while a process runs that does not have it', async () => {
    await fill(old);
    await node('actor-host', both.keyIds);
    await node('gateway', old.keyIds);
    await node('gateway');
    await node('worker');
    const { reseal, lines } = job();
    await reseal.run();
    await reseal.run();
    expect(await countSealedOtherwise(store, prefix)).to.equal(3 * VALUES);
    expect(lines).to.have.length(1);
    expect(lines[0]?.['processes']).to.deep.equal(['gateway 1 of elsewhere', 'gateway 1 of elsewhere']);
    await store.knex('nodes').where({ kind: 'gateway' }).delete();
    await reseal.run();
    expect(await countSealedOtherwise(store, prefix)).to.equal(0);
  });
});
