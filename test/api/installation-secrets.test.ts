/** Secrets of the installation, and references to them in the configs of services. */
import { expect } from 'chai';
import { SERVICE_TYPES, secretSettings } from '../../src/model/service-configs.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure, TIMESTAMP } from '../support/expect.js';
import { uniqueName } from '../support/names.js';

interface Service {
  readonly name: string;
  readonly id: string;
  readonly config: object;
}

const LARGEST = 64 * 1024;

describe('secrets of the installation', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  const set = (name: string, value: unknown = 'a value') =>
    api.put(`/api/secrets/${encodeURIComponent(name)}`, { value });
  const post = (config: object, service_type = 'redis') =>
    api.post('/api/services', { name: uniqueName('S'), service_type, config });
  const create = async (config: object, service_type = 'redis') =>
    expectData<Service>(await post(config, service_type), 201);
  const versionOf = async (id: string) =>
    (await api.store.knex('services').where({ id }).first<{ version: number }>('version')).version;

  it('lists secrets of the installation by name, with when they were set, and never with a value', async () => {
    expect(expectData(await set('Z_LAST', 'zzz-hidden-value'))).to.deep.equal({ name: 'Z_LAST' });
    expectData(await set('A_FIRST', 'aaa-hidden-value'));
    const { body } = await api.get('/api/secrets');
    const listed = (body as { data: { name: string; updated_at: string }[] }).data;
    expect(listed.map(({ name }) => name)).to.deep.equal(['A_FIRST', 'Z_LAST']);
    for (const secret of listed) {
      expect(secret).to.have.all.keys('name', 'updated_at', 'actor');
      expect(secret).to.deep.include({ actor: { kind: 'anonymous', address: '127.0.0.1' } });
      expect(secret.updated_at).to.match(TIMESTAMP);
    }
    expect(JSON.stringify(body)).not.to.include('hidden-value');
    expect(JSON.stringify(await api.store.knex('installation_secrets'))).not.to.include('hidden-value');
    expect(JSON.stringify(api.logged.lines)).not.to.include('hidden-value');

    expectData(await set('Z_LAST', 'another'));
    const again = expectData<{ updated_at: string }[]>(await api.get('/api/secrets'));
    expect(new Date(again[1]?.updated_at ?? 0)).to.be.greaterThan(new Date(listed[1]?.updated_at ?? 0));
    const path = '/api/secrets/Z_LAST';
    expect(expectData(await api.delete(path))).to.deep.equal({ name: 'Z_LAST', deleted: true });
    expectFailure(await api.delete(path), 'not_found', /secret/);
  });

  it('accepts references to secrets in configs of services, wherever a secret may stand', async () => {
    expectData(await set('STANDS'));
    const reference = { secret: 'STANDS' };
    const least: Record<string, object> = {
      postgres: { host: 'h', database: 'd', username: 'u' },
      mysql: { host: 'h', database: 'd', username: 'u' },
      objstore: { endpoint: 'h:9000', access_key: 'a', bucket: 'b' },
      email: { host: 'h', from_address: 'a@b.example' },
      http: { base_url: 'https://h', username: 'u' },
      'http with a token': { base_url: 'https://h' },
    };
    const together: Record<string, readonly string[]> = {
      http: ['password', 'api_key'],
      'http with a token': ['token', 'api_key'],
    };
    for (const title of [...SERVICE_TYPES, 'http with a token'] as const) {
      const type = title === 'http with a token' ? 'http' : title;
      const settings = together[title] ?? [...secretSettings(type)];
      const secrets = Object.fromEntries(settings.map((key) => [key, reference]));
      if (settings.length === 0) continue;
      const { id, config } = await create({ ...(least[title] ?? { host: 'h' }), ...secrets }, type);
      expect(config, title).to.deep.include(secrets);
      const shown = expectData<Service>(await api.get(`/api/services/${id}`));
      expect(shown.config).to.deep.equal(config);
      // What is shown can be sent back.
      expectData(await api.put(`/api/services/${id}`, { config: shown.config }));
      expectData(await api.delete(`/api/services/${id}`));
    }
    expectData(await api.delete('/api/secrets/STANDS'));
  });

  it('accepts references to secrets in headers of a service, each by itself', async () => {
    const base = { base_url: 'https://h' };
    const headers = { 'X-Auth-Token': { secret: 'IN_HEADER' }, Accept: 'text/plain' };
    expectFailure(await post({ ...base, headers }, 'http'), 'invalid_config', /IN_HEADER/);
    expectData(await set('IN_HEADER'));
    const { id, name, config } = await create({ ...base, headers }, 'http');
    expect(config).to.deep.include({ headers });
    expectData(await api.put(`/api/services/${id}`, { config }));
    const before = await versionOf(id);
    expectData(await set('IN_HEADER', 'changed'));
    expect(await versionOf(id)).to.equal(before + 1);
    expectFailure(await api.delete('/api/secrets/IN_HEADER'), 'secret_in_use', new RegExp(`"${name}"`));
    for (const wrong of [
      { secret: 'no name!' },
      { secret: 'IN_HEADER', more: 1 },
      { other: 'x' },
      ['x'],
      null,
    ])
      expectFailure(
        await post({ ...base, headers: { 'X-A': wrong } }, 'http'),
        'invalid_config',
        /^config\.headers\.X-A/,
      );
    expectFailure(await post({ ...base, headers: { secret: 'IN_HEADER' } }, 'http'), 'invalid_config');
    expectData(await api.delete(`/api/services/${id}`));
    expectData(await api.delete('/api/secrets/IN_HEADER'));
  });

  it('shows references to secrets with REDACT_SECRETS, too', async () => {
    const redacting = await startApi({ config: { REDACT_SECRETS: true } });
    try {
      expectData(await redacting.put('/api/secrets/SHOWN', { value: 'v' }));
      const body = {
        name: uniqueName('S'),
        service_type: 'redis',
        config: { host: 'h', password: { secret: 'SHOWN' } },
      };
      const { id, config } = expectData<Service>(await redacting.post('/api/services', body), 201);
      expect(config).to.deep.include({ password: { secret: 'SHOWN' } });
      const hidden = { config: { host: 'h', password: '***' } };
      expectFailure(
        await redacting.put(`/api/services/${id}`, hidden),
        'invalid_config',
        /there is none yet/,
      );
      // The other way round, the hidden password of a service is not sent to where a secret says.
      const uri = { secret: 'SHOWN' };
      const mongodb = { ...body, service_type: 'mongodb', config: { uri, username: 'u', password: 'p' } };
      expectFailure(
        await redacting.post('/api/services', mongodb),
        'invalid_config',
        /config\.password: must refer/,
      );
    } finally {
      await redacting.close();
    }
  });

  it('a changed secret increments the versions of the services that use it, and of no others', async () => {
    expectData(await set('USED'));
    const { id } = await create({ host: 'h', password: { secret: 'USED' } });
    const other = await create({ host: 'h' });
    const [before, otherBefore] = [await versionOf(id), await versionOf(other.id)];
    expectData(await set('USED', 'changed'));
    expect(await versionOf(id)).to.equal(before + 1);
    expect(await versionOf(other.id)).to.equal(otherBefore);
    expectData(await api.put(`/api/services/${id}`, { config: { pool_size: 2 } }));
    const changed = await versionOf(id);
    expectData(await set('USED', 'changed once more'));
    expect(await versionOf(id)).to.equal(changed + 1);
    expectData(await api.put(`/api/services/${id}`, { config: { password: null } }));
    const replaced = await versionOf(id);
    expectData(await set('USED', 'changed again'));
    expect(await versionOf(id)).to.equal(replaced);
  });

  it('refuses to delete a secret that a service uses, and names the service', async () => {
    expectData(await set('IN_USE'));
    const { id, name } = await create({ host: 'h', password: { secret: 'IN_USE' } });
    const response = await api.delete('/api/secrets/IN_USE');
    expectFailure(response, 'secret_in_use', new RegExp(`"${name}"`));
    expect(response.body).to.have.deep.property('details', { services: [{ id, name }] });
    expectData(await api.put(`/api/services/${id}`, { name: 'Renamed' }));
    expectFailure(await api.delete('/api/secrets/IN_USE'), 'secret_in_use', /"Renamed"/);
    expectData(await api.delete(`/api/services/${id}`));
    expectData(await api.delete('/api/secrets/IN_USE'));
    const names = expectData<{ name: string }[]>(await api.get('/api/secrets')).map(({ name }) => name);
    expect(names).not.to.include('IN_USE');
  });

  it('deleting a secret while a config begins to use it never leaves a reference to nothing', async () => {
    for (let turn = 0; turn < 20; turn++) {
      expectData(await set('CONTENDED'));
      const { id } = await create({ host: 'h' });
      const config = { host: 'h', password: { secret: 'CONTENDED' } };
      const [changed, , deleted] = await Promise.all([
        api.put(`/api/services/${id}`, { config }),
        set('CONTENDED', 'changed'),
        api.delete('/api/secrets/CONTENDED'),
      ]);
      expect([200, 400]).to.include(changed.status);
      expect([200, 409]).to.include(deleted.status);
      const { config: after } = expectData<Service>(await api.get(`/api/services/${id}`));
      const secrets = expectData<{ name: string }[]>(await api.get('/api/secrets'));
      if ('password' in after) expect(secrets.map(({ name }) => name)).to.include('CONTENDED');
      expectData(await api.delete(`/api/services/${id}`));
    }
  });

  describe('invalid secrets', () => {
    it('refuses a secret whose name is not valid, and changes nothing', async () => {
      const before = expectData(await api.get('/api/secrets'));
      for (const name of ['1A', 'A=B', 'A B', 'A-B', 'Ä', 'A\n', 'x'.repeat(129), 'LD_PRELOAD', 'PATH'])
        expectFailure(await set(name), 'invalid_input', /^path\.name: (must|is reserved)/);
      expectFailure(await api.put('/api/secrets/', { value: 'x' }), 'method_not_allowed');
      expect(expectData(await api.get('/api/secrets'))).to.deep.equal(before);
    });

    it('refuses a secret whose value is not valid, or too long, and changes nothing', async () => {
      expectData(await set('LARGE', 'x'.repeat(LARGEST)));
      expectFailure(
        await set('LARGE', 'x'.repeat(LARGEST + 1)),
        'invalid_input',
        /^body\.value: has 65537 bytes/,
      );
      expectFailure(
        await set('LARGE', 'ä'.repeat(LARGEST / 2 + 1)),
        'invalid_input',
        /65538 bytes; at most 65536/,
      );
      expectFailure(await api.put('/api/secrets/NONE', {}), 'invalid_input', /^body\.value: is required/);
      for (const value of [null, 1, {}, ['a'], 'a\u0000b', '\ud800'])
        expectFailure(await set('NONE', value), 'invalid_input', /^body\.value/);
      const names = expectData<{ name: string }[]>(await api.get('/api/secrets')).map(({ name }) => name);
      expect(names).to.include('LARGE').and.not.include('NONE');
    });

    it('refuses configs with invalid references to secrets, and changes nothing', async () => {
      expectData(await set('EXISTS'));
      const existing = await create({ host: 'h' });
      const before = await api.get('/api/services');
      const unknown = /there is no secret "UNKNOWN"; set it with PUT \/api\/secrets\/UNKNOWN first/;
      const wrong: [config: object, message: RegExp, type?: string][] = [
        [{ host: 'h', password: { secret: 'UNKNOWN' } }, unknown],
        [{ host: 'h', password: { secret: 5 } }, /^config\.password\.secret: must be a string, not a number/],
        [{ host: 'h', password: { secret: null } }, /^config\.password\.secret: must be a string, not null/],
        [{ host: 'h', password: { secret: '' } }, /^config\.password\.secret: must begin with a letter/],
        [
          { host: 'h', password: { secret: 'A\u0000' } },
          /^config\.password\.secret: must begin with a letter/,
        ],
        [{ host: 'h', password: { secret: 'PATH' } }, /^config\.password\.secret: is reserved/],
        [{ host: 'h', password: {} }, /^config\.password\.secret: is required/],
        [{ host: 'h', password: { secret: 'EXISTS', more: 1 } }, /^config\.password\.more: is not accepted/],
        [
          { host: 'h', password: [{ secret: 'EXISTS' }] },
          /^config\.password: must be a string or null or an object/,
        ],
        [{ host: { secret: 'EXISTS' } }, /^config\.host: is no secret.* those of this type are password/],
        [{ host: { secret: 'UNKNOWN' } }, /^config\.host: is no secret/],
        [{ host: 'h', unknown: { secret: 'EXISTS' } }, /^config\.unknown: is not accepted/],
        [{ secret: 'EXISTS' }, /^config\.\w+: is/],
        [{ path: { secret: 'EXISTS' } }, /^config\.path: is no secret.* this type has none/, 'sqlite'],
      ];
      for (const [config, message, type] of wrong) {
        expectFailure(await post(config, type), 'invalid_config', message);
        if (type === undefined)
          expectFailure(await api.put(`/api/services/${existing.id}`, { config }), 'invalid_config', message);
      }
      expectFailure(await api.put(`/api/services/${existing.id}`, { config: 'EXISTS' }), 'invalid_config');
      expect((await api.get('/api/services')).body).to.deep.equal(before.body);
    });
  });
});
