import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import type { ServiceView } from '../../src/api/services/services.schema.js';
import { SERVICE_TYPES } from '../../src/model/service-configs.js';
import { createSecretBox } from '../../src/secrets/secret-box.js';
import { findService } from '../../src/store/services.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure, NO_ID, TIMESTAMP, UUID } from '../support/expect.js';
import { uniqueName } from '../support/names.js';

type Service = Static<typeof ServiceView>;

/** Per type: the least that is accepted, what comes back, and what is wrong. */
const TYPES: Readonly<
  Record<
    (typeof SERVICE_TYPES)[number],
    {
      readonly least: object;
      readonly complete: object;
      readonly full: object;
      readonly wrong: readonly [config: object, message: RegExp][];
    }
  >
> = {
  sqlite: {
    least: { path: 'a.db' },
    complete: { path: 'a.db', create_if_missing: true },
    full: { path: 'x/a.db', create_if_missing: false, max_size_mb: 1 },
    wrong: [
      [{ path: 'a', max_size_mb: 0 }, /^config\.max_size_mb: must be at least 1/],
      [{}, /^config\.path: is required/],
      [{ path: '' }, /^config\.path: must not be empty/],
      [
        { path: 'a', create_if_missing: 'yes' },
        /^config\.create_if_missing: must be a boolean, not a string/,
      ],
    ],
  },
  postgres: {
    least: { host: 'h', database: 'd', username: 'u' },
    complete: { host: 'h', port: 5432, database: 'd', username: 'u', ssl_mode: 'prefer', pool_size: 10 },
    full: {
      host: 'h',
      port: 1,
      database: 'd',
      username: 'u',
      password: 'p',
      ssl_mode: 'verify-full',
      pool_size: 100,
    },
    wrong: [
      [{ host: '/run/postgresql', database: 'd', username: 'u' }, /^config\.host: .*not a Unix socket/],
      [{ database: 'd', username: 'u' }, /^config\.host: is required/],
      [{ host: 'h', username: 'u' }, /^config\.database: is required/],
      [{ host: 'h', database: 'd' }, /^config\.username: is required/],
      [
        { host: 'h', database: 'd', username: 'u', port: '5432' },
        /^config\.port: must be an integer, not a string/,
      ],
      [{ host: 'h', database: 'd', username: 'u', port: 0 }, /^config\.port: must be at least 1/],
      [{ host: 'h', database: 'd', username: 'u', port: 65536 }, /^config\.port: must be at most 65535/],
      [{ host: 'h', database: 'd', username: 'u', port: 1.5 }, /^config\.port: must be an integer/],
      [
        { host: 'h', database: 'd', username: 'u', ssl_mode: 'on' },
        /^config\.ssl_mode: must be one of disable, prefer, require, verify-ca, verify-full/,
      ],
      [{ host: 'h', database: 'd', username: 'u', pool_size: 0 }, /^config\.pool_size: must be at least 1/],
      [
        { host: 'h', database: 'd', username: 'u', pool_size: 101 },
        /^config\.pool_size: must be at most 100/,
      ],
      [
        { host: 'h', database: 'd', username: 'u', pasword: 'p' },
        /^config\.pasword: is not accepted; .*password/,
      ],
    ],
  },
  mysql: {
    least: { host: 'h', database: 'd', username: 'u' },
    complete: { host: 'h', port: 3306, database: 'd', username: 'u', use_ssl: false, pool_size: 10 },
    full: {
      ...{ host: 'h', port: 3307, database: 'd', username: 'u', password: 'p', pool_size: 1 },
      ...{ use_ssl: true, ssl_root_cert: 'PEM', ssl_verify: false },
    },
    wrong: [
      [
        { host: 'h', database: 'd', username: 'u', ssl_verify: 'no' },
        /^config\.ssl_verify: must be a boolean/,
      ],
      [{ host: 'h', database: 'd' }, /^config\.username: is required/],
      [{ host: 'h', database: 'd', username: 'u', use_ssl: 1 }, /^config\.use_ssl: must be a boolean/],
    ],
  },
  redis: {
    least: { host: 'h' },
    complete: { host: 'h', port: 6379, database: 0, use_tls: false, pool_size: 10 },
    full: {
      ...{ host: 'h', port: 6380, password: null, database: 3, use_tls: true, pool_size: 5 },
      allow_scripts: true,
    },
    wrong: [
      [{}, /^config\.host: is required/],
      [{ host: 'h', database: -1 }, /^config\.database: must be at least 0/],
      [{ host: 'h', password: 1 }, /^config\.password: must be a string or null or an object, not a number/],
    ],
  },
  mongodb: {
    least: { uri: 'mongodb://h' },
    complete: { uri: 'mongodb://h', pool_size: 10 },
    full: { host: 'h', port: 27018, database: 'd', username: 'u', password: 'p', pool_size: 2 },
    wrong: [
      [{}, /^config: needs uri or host/],
      [{ host: 'h', port: 'x' }, /^config\.port: must be an integer/],
      [
        { uri: 'mongodb://h/?tlsCertificateKeyFile=/etc/shadow' },
        /^config\.uri: the option "tlsCertificateKeyFile"/,
      ],
      [{ uri: 'mongodb://h/?TLSCAFILE=/x' }, /^config\.uri: the option "TLSCAFILE" .* ssl_root_cert/],
      [{ uri: 'mongodb://h/?mongodbLogPath=/x' }, /^config\.uri: the option "mongodbLogPath" is not allowed/],
      [{ uri: 'mongodb://%2Frun%2Fmongodb.sock/' }, /^config\.uri: must name hosts, not Unix sockets/],
      [{ uri: 'mongodb://a,%2Frun%2Fmongodb.sock/d?w=1' }, /^config\.uri: must name hosts/],
      [{ host: 'h', ssl_root_cert: 'PEM' }, /^config\.ssl_root_cert: needs a uri with tls=true/],
      [{ uri: 'mongodb://h/?tls=false', ssl_root_cert: 'PEM' }, /^config\.ssl_root_cert: needs a uri/],
      [{ uri: 'mongodb://h/?authMechanism=MONGODB-AWS' }, /^config\.uri: this authMechanism is not allowed/],
    ],
  },
  objstore: {
    least: { endpoint: 'h:9000', access_key: 'a', secret_key: 's', bucket: 'b' },
    complete: { endpoint: 'h:9000', access_key: 'a', secret_key: 's', bucket: 'b', use_ssl: false },
    full: { endpoint: 'h:9000', access_key: 'a', secret_key: 's', bucket: 'b', use_ssl: true, region: 'r' },
    wrong: [
      [{ access_key: 'a', secret_key: 's', bucket: 'b' }, /^config\.endpoint: is required/],
      [{ endpoint: 'h', secret_key: 's', bucket: 'b' }, /^config\.access_key: is required/],
      [{ endpoint: 'h', access_key: 'a', bucket: 'b' }, /^config\.secret_key: is required/],
      [{ endpoint: 'h', access_key: 'a', secret_key: 's' }, /^config\.bucket: is required/],
    ],
  },
  memcached: {
    least: { host: 'h' },
    complete: { host: 'h', port: 11211 },
    full: { servers: ['a:1', 'b:2'] },
    wrong: [
      [{}, /^config: needs servers or host/],
      [{ servers: [] }, /^config\.servers: must not be empty/],
      [{ servers: [1] }, /^config\.servers\.0: must be a string/],
      [{ servers: 5 }, /^config\.servers: must be an array or a string/],
    ],
  },
  ftp: {
    least: { host: 'h' },
    complete: {
      host: 'h',
      port: 21,
      protocol: 'ftp',
      base_path: '/',
      timeout_seconds: 30,
      passive: true,
    },
    full: {
      host: 'h',
      port: 2222,
      username: 'u',
      password: 'p',
      private_key: 'k\nl',
      protocol: 'sftp',
      base_path: '/in',
      timeout_seconds: 600,
      passive: false,
    },
    wrong: [
      [{}, /^config\.host: is required/],
      [{ host: 'h', protocol: 'http' }, /^config\.protocol: must be one of ftp, ftps, sftp/],
      [{ host: 'h', timeout_seconds: 0 }, /^config\.timeout_seconds: must be at least 1/],
      [{ host: 'h', timeout_seconds: 601 }, /^config\.timeout_seconds: must be at most 600/],
    ],
  },
  http: {
    least: { base_url: 'https://api.example/v1' },
    complete: {
      base_url: 'https://api.example/v1',
      allow_private_addresses: false,
      connect_timeout_seconds: 5,
      timeout_seconds: 30,
      pool_size: 10,
    },
    full: {
      base_url: 'https://api.example:8443/v1/',
      headers: { Accept: 'application/json', 'X-Team': 'a' },
      username: 'u',
      password: 'p',
      api_key: 'k',
      api_key_header: 'X-Key',
      hosts: ['files.example', '[::1]:8443'],
      methods: ['GET', 'POST'],
      allow_private_addresses: true,
      ssl_root_cert: 'PEM',
      connect_timeout_seconds: 1,
      timeout_seconds: 600,
      pool_size: 1,
    },
    wrong: [
      [{}, /^config\.base_url: is required/],
      [{ base_url: 'api.example' }, /^config\.base_url: must be a URL that begins with https:/],
      [{ base_url: 'ftp://api.example' }, /^config\.base_url: must be a URL that begins with https:/],
      [{ base_url: 'https://u:p@api.example' }, /^config\.base_url: must have no user and no password/],
      [{ base_url: 'https://api.example/?key=1' }, /^config\.base_url: must have no query/],
      [{ base_url: 'https://a.example', hosts: ['b.example/x'] }, /^config\.hosts: "b\.example\/x" must be/],
      [{ base_url: 'https://a.example', hosts: ['u@b.example'] }, /^config\.hosts: "u@b\.example" must be/],
      [{ base_url: 'https://a.example', hosts: ['https://b.example'] }, /^config\.hosts: /],
      [
        { base_url: 'https://a.example', methods: ['TRACE'] },
        /^config\.methods\.0: must be one of GET, HEAD/,
      ],
      [{ base_url: 'https://a.example', methods: [] }, /^config\.methods: /],
      [{ base_url: 'https://a.example', headers: { 'a b': 'c' } }, /^config\.headers/],
      [{ base_url: 'https://a.example', headers: { a: 'b\r\nc: d' } }, /^config\.headers\.a: /],
      [
        { base_url: 'https://a.example', headers: { Host: 'b' } },
        /^config\.headers: "Host" is set by the conn/,
      ],
      [
        { base_url: 'https://a.example', headers: { a: 'b', A: 'c' } },
        /^config\.headers: "A" is given twice/,
      ],
      [
        { base_url: 'https://a.example', token: 't', headers: { authorization: 'x' } },
        /^config\.headers: "authorization" is set by the credentials/,
      ],
      [{ base_url: 'https://a.example', token: 't', username: 'u' }, /^config\.token: .* beside username/],
      [{ base_url: 'https://a.example', password: 'p' }, /^config\.password: needs a username/],
      [{ base_url: 'https://a.example', username: 'a:b' }, /^config\.username: must have no colon/],
      [{ base_url: 'https://a.example', api_key_header: 'a' }, /^config\.api_key_header: needs an api_key/],
      [
        { base_url: 'https://a.example', api_key: 'k', api_key_header: 'Content-Length' },
        /^config\.api_key_header: "Content-Length" is set by the connection/,
      ],
      [{ base_url: 'http://a.example', ssl_root_cert: 'x' }, /^config\.ssl_root_cert: needs a base_url/],
    ],
  },
  email: {
    least: { host: 'h', from_address: 'a@b.example' },
    complete: { host: 'h', port: 587, encryption: 'starttls', from_address: 'a@b.example' },
    full: {
      host: 'h',
      port: 26,
      username: 'u',
      password: 'p',
      encryption: 'none',
      from_address: 'a@b.example',
      from_name: 'A',
    },
    wrong: [
      [{ from_address: 'a@b.example' }, /^config\.host: is required/],
      [{ host: 'h' }, /^config\.from_address: is required/],
      [{ host: 'h', from_address: 'nobody' }, /^config\.from_address: must be an e-mail address/],
      [
        { host: 'h', from_address: 'a@b', encryption: 'ssl' },
        /^config\.encryption: must be one of none, starttls, tls/,
      ],
    ],
  },
};

describe('services', () => {
  let api: TestApi;

  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  async function create(more: object = {}): Promise<Service> {
    const body = { name: uniqueName('S'), service_type: 'redis', config: { host: 'h' }, ...more };
    return expectData(await api.post('/api/services', body), 201);
  }

  it('creates a service with a name, a type and a config', async () => {
    const service = await create({ name: 'S' });
    expect(service).to.deep.equal({
      id: service.id,
      domains: [],
      stack: null,
      name: 'S',
      service_type: 'redis',
      config: { host: 'h', port: 6379, database: 0, use_tls: false, pool_size: 10 },
      enabled: true,
      active: false,
      state: 'inactive',
      state_message: null,
      created_at: service.created_at,
      updated_at: service.updated_at,
    });
    expect(service.id).to.match(UUID);
    expect(service.created_at).to.match(TIMESTAMP);
    expect(await create({ enabled: false })).to.include({ enabled: false });
  });

  it('shows a service, and lists all services', async () => {
    const service = await create({ name: 'Shown' });
    expect(expectData(await api.get(`/api/services/${service.id}`))).to.deep.equal(service);
    const listed = expectData<Service[]>(await api.get('/api/services'));
    expect(listed.at(-1)).to.deep.equal(service);
  });

  for (const [service_type, { least, complete, full, wrong }] of Object.entries(TYPES)) {
    describe(service_type, () => {
      it(`sets the defaults of a config of ${service_type}`, async () => {
        expect((await create({ service_type, config: least })).config).to.deep.equal(complete);
      });

      it(`keeps every key of a config of ${service_type}`, async () => {
        const service = await create({ service_type, config: full });
        expect(service.config).to.deep.equal(full);
        expect(expectData<Service>(await api.get(`/api/services/${service.id}`)).config).to.deep.equal(full);
      });

      for (const [config, message] of [
        ...wrong,
        [{ ...least, unknown: 1 }, /^config\.unknown: is not accepted/] as const,
      ]) {
        it(`refuses the ${service_type} config ${JSON.stringify(config)}`, async () => {
          const existing = await create({ service_type, config: least });
          const before = await api.get('/api/services');
          expectFailure(
            await api.post('/api/services', { name: 'S', service_type, config }),
            'invalid_config',
            message,
          );
          // A config as a whole: what it leaves out is taken away.
          const removed = Object.keys(existing.config).map((key) => [key, null]);
          const whole = { ...Object.fromEntries(removed), ...config };
          expectFailure(
            await api.put(`/api/services/${existing.id}`, { config: whole, name: 'B' }),
            'invalid_config',
            message,
          );
          expect((await api.get('/api/services')).body).to.deep.equal(before.body);
        });
      }
    });
  }

  it('fills in ports of services that depend on other keys of the config', async () => {
    const portOf = async (service_type: string, config: object) =>
      ((await create({ service_type, config })).config as { port?: number }).port;
    const mail = { host: 'h', from_address: 'a@b.example' };
    expect(await portOf('ftp', { host: 'h', protocol: 'ftps' })).to.equal(21);
    expect(await portOf('ftp', { host: 'h', protocol: 'sftp' })).to.equal(22);
    expect(await portOf('email', { ...mail, encryption: 'none' })).to.equal(25);
    expect(await portOf('email', { ...mail, encryption: 'tls' })).to.equal(465);
    expect(await portOf('mongodb', { host: 'h' })).to.equal(27017);
    expect(await portOf('mongodb', { uri: 'mongodb://h' })).to.equal(undefined);
    expect(
      (await create({ service_type: 'memcached', config: { servers: 'a:1, b:2' } })).config,
    ).to.deep.equal({
      servers: ['a:1', 'b:2'],
    });
  });

  it('changes only the given fields of a service and its config, from which null removes one', async () => {
    const before = await create({ config: { host: 'h', password: 'p', pool_size: 3 } });
    const named = expectData<Service>(
      await api.put(`/api/services/${before.id}`, { name: 'B', enabled: false }),
    );
    expect(named).to.deep.equal({ ...before, name: 'B', enabled: false, updated_at: named.updated_at });
    expect(named.updated_at > before.updated_at).to.equal(true);
    const change = async (config: object) =>
      expectData<Service>(await api.put(`/api/services/${before.id}`, { config }));
    const rest = { port: 6379, database: 0, use_tls: false };
    expect((await change({ password: 'q' })).config).to.deep.equal({
      ...rest,
      host: 'h',
      password: 'q',
      pool_size: 3,
    });
    expect((await change({ host: 'i' })).config).to.deep.equal({
      ...rest,
      host: 'i',
      password: 'q',
      pool_size: 3,
    });
    const changed = await change({ password: null, pool_size: null });
    expect(changed.config).to.deep.equal({ ...rest, host: 'i', pool_size: 10 });
    const url = `/api/services/${before.id}`;
    expectFailure(await api.put(url, { config: { host: null } }), 'invalid_config', /config\.host/);
    expectFailure(await api.put(url, { config: { pasword: 'x' } }), 'invalid_config', /pasword/);
    expect(expectData(await api.put(`/api/services/${before.id}`, {}))).to.deep.equal(changed);
  });

  it('keeps the type of a service, and warns that it ignores another one', async () => {
    const service = await create();
    const response = await api.put(`/api/services/${service.id}`, {
      service_type: 'sqlite',
      name: uniqueName('B'),
    });
    expect(expectData<Service>(response).service_type).to.equal('redis');
    expect(response.body)
      .to.have.nested.property('warnings[0]')
      .that.matches(/^body\.service_type/);
  });

  it('deletes a service once, with its bindings', async () => {
    const { id } = await create();
    const endpoint = expectData<{ id: string }>(
      await api.post('/api/endpoints', { name: 'E', path: '/bound', method: 'GET', domain: '*' }),
      201,
    );
    const path = `/api/endpoints/${endpoint.id}/services`;
    expectData(await api.post(path, { service_id: id, pool_id: 'p' }), 201);
    expect(expectData(await api.delete(`/api/services/${id}`))).to.deep.equal({ id, deleted: true });
    expectFailure(await api.delete(`/api/services/${id}`), 'not_found');
    expect(expectData(await api.get(path))).to.deep.equal([]);
  });

  it('stores configs of services encrypted, and logs nothing of them', async () => {
    const secret = 'correct-horse-battery';
    const { id } = await create({ config: { host: 'secret-host', password: secret } });
    const row: unknown = await api.store.knex('services').where({ id }).first();
    expect(JSON.stringify(row)).to.not.include(secret).and.not.include('secret-host');
    expectFailure(
      await api.put(`/api/services/${id}`, { config: { host: 'h', password: secret, port: secret } }),
      'invalid_config',
    );
    const { body } = await api.put(`/api/services/${id}`, { config: { host: 'h', protocol: secret } });
    expect(JSON.stringify(body)).to.not.include(secret);
    expect(JSON.stringify(api.logged.lines)).to.not.include(secret);
  });

  it('reports a config of a service that was saved with another SECRET_KEY', async () => {
    const { id } = await create({ name: 'Foreign' });
    const config_encrypted = createSecretBox('quite another key').seal('{}');
    await api.store.knex('services').where({ id }).update({ config_encrypted });
    expectFailure(await api.get(`/api/services/${id}`), 'secret_key_mismatch', /"Foreign".*SECRET_KEY/);
    await api.delete(`/api/services/${id}`);
  });

  describe('invalid services', () => {
    const wrongFields: readonly [fields: object, message: RegExp][] = [
      [{ name: undefined }, /^body\.name: is required/],
      [{ name: 1 }, /^body\.name: must be a string/],
      [{ service_type: undefined }, /^body\.service_type: is required/],
      [
        { service_type: 'oracle' },
        new RegExp(`^body\\.service_type: must be one of ${SERVICE_TYPES.join(', ')}`),
      ],
      [{ service_type: 'toString' }, /^body\.service_type: must be one of/],
      [{ config: undefined }, /^body\.config: is required/],
      [{ config: 'h' }, /^body\.config: must be an object, not a string/],
      [{ config: [] }, /^body\.config: must be an object, not an array/],
      [{ config: null }, /^body\.config: must be an object, not null/],
      [{ enabled: 'true' }, /^body\.enabled: must be a boolean/],
    ];

    for (const [fields, message] of wrongFields) {
      it(`refuses a service whose ${Object.keys(fields).join()} is ${JSON.stringify(Object.values(fields)[0])}`, async () => {
        const before = await api.get('/api/services');
        const response = await api.post('/api/services', {
          name: 'S',
          service_type: 'redis',
          config: { host: 'h' },
          ...fields,
        });
        const isConfig = 'config' in fields && fields.config !== undefined;
        expectFailure(response, isConfig ? 'invalid_config' : 'invalid_input', message);
        expect((await api.get('/api/services')).body).to.deep.equal(before.body);
      });
    }

    it('refuses invalid and unknown ids of services', async () => {
      expectFailure(await api.get('/api/services/x'), 'invalid_input', /^path\.id/);
      expectFailure(await api.get(`/api/services/${NO_ID}`), 'not_found', /service .* does not exist/);
      expectFailure(await api.put(`/api/services/${NO_ID}`, { name: 'B' }), 'not_found');
      expectFailure(await api.delete(`/api/services/${NO_ID}`), 'not_found');
      for (const operation of ['activate', 'deactivate', 'test']) {
        expectFailure(await api.post(`/api/services/x/${operation}`), 'invalid_input', /^path\.id/);
        expectFailure(await api.post(`/api/services/${NO_ID}/${operation}`), 'not_found');
      }
    });
  });

  it('answers a failed activation or deactivation of a service with success beside ok', async () => {
    for (const operation of ['activate', 'deactivate']) {
      const response = await api.post(`/api/services/${NO_ID}/${operation}`);
      expect(response.body).to.include({ success: false, ok: false, code: 'not_found' });
    }
  });

  it('refuses to activate a service without an actor host, or one that is disabled', async () => {
    const { id } = await create();
    expectFailure(await api.post(`/api/services/${id}/activate`), 'no_actor_host', /start the `actor-host`/);
    await api.put(`/api/services/${id}`, { enabled: false });
    expectFailure(await api.post(`/api/services/${id}/activate`), 'service_disabled', /"S \d+" is disabled/);
    expect(expectData<Service>(await api.get(`/api/services/${id}`)).active).to.equal(false);
  });

  it('answers that a service was not active when an inactive one is deactivated', async () => {
    const { id, name } = await create();
    const { status, body } = await api.post(`/api/services/${id}/deactivate`);
    expect(status).to.equal(200);
    expect(body).to.deep.equal({
      success: true,
      data: { id, name, service_type: 'redis', active: false, message: 'It was not active.' },
    });
  });

  describe('services with REDACT_SECRETS', () => {
    let redacting: TestApi;
    before(async () => {
      redacting = await startApi({ config: { REDACT_SECRETS: true } });
    });
    after(() => redacting.close());

    it('hides secrets of services with REDACT_SECRETS, and keeps those that come back hidden', async () => {
      const config = { host: 'h', database: 'd', username: 'u', password: 'the secret' };
      const body = { name: 'S', service_type: 'postgres', config };
      const created = expectData<Service>(
        await redacting.post('/api/services', { ...body, name: uniqueName('S') }),
        201,
      );
      expect(created.config).to.include({ username: 'u', password: '***' });
      const path = `/api/services/${created.id}`;
      const shown = expectData<Service>(await redacting.get(path));
      expect(shown.config).to.deep.equal(created.config);
      const changed = { config: { ...shown.config, database: 'other' } };
      expectData(await redacting.put(path, changed));

      const { config_encrypted } = (await findService(redacting.store, created.id)) ?? {};
      // Elsewhere, the secret would be sent to another server.
      const moved = { config: { ...shown.config, port: 6666 } };
      expectFailure(
        await redacting.put(path, moved),
        'invalid_config',
        /config\.password: .*config\.port changes/,
      );
      expectFailure(
        await redacting.post('/api/services', { ...body, config: { ...config, password: '***' } }),
        'invalid_config',
        /config\.password/,
      );
      const stored = JSON.parse(createSecretBox('a key for the tests').open(config_encrypted ?? ''));
      expect(stored).to.include({ database: 'other', password: 'the secret' });
    });

    it('refuses another server for a service while its password is left out', async () => {
      const body = { name: 'R', service_type: 'redis', config: { host: 'h', password: 'the secret' } };
      const { id } = expectData<Service>(
        await redacting.post('/api/services', { ...body, name: uniqueName('S') }),
        201,
      );
      const change = (config: object) => redacting.put(`/api/services/${id}`, { config });
      expectData(await change({ pool_size: 4 }));
      for (const config of [{ host: 'elsewhere' }, { port: 1 }, { use_tls: true }])
        expectFailure(await change(config), 'invalid_config', /config\.password: has to be sent again/);
      expectData(await change({ host: 'elsewhere', password: 'another' }));
      expectData(await change({ host: 'i', password: null }));
    });

    it('refuses a new URI of a service while its password stays hidden', async () => {
      const config = { host: 'h', username: 'u', password: 'the secret' };
      const body = { name: 'M', service_type: 'mongodb', config };
      const { id } = expectData<Service>(
        await redacting.post('/api/services', { ...body, name: uniqueName('S') }),
        201,
      );
      const hidden = { ...config, password: '***' };
      expectData(await redacting.put(`/api/services/${id}`, { config: hidden }));
      expectFailure(
        await redacting.put(`/api/services/${id}`, { config: { ...hidden, uri: 'mongodb://elsewhere' } }),
        'invalid_config',
        /config\.password: .*config\.uri changes/,
      );
    });

    it('hides the values of headers one by one with REDACT_SECRETS, and keeps those that come back', async () => {
      const headers = { 'X-Auth-Token': 'the first secret', 'X-Tenant': 'the second secret' };
      const body = {
        name: 'H',
        service_type: 'http',
        config: { base_url: 'https://a.example', headers, token: 'the third secret' },
      };
      const created = expectData<Service>(
        await redacting.post('/api/services', { ...body, name: uniqueName('S') }),
        201,
      );
      expect(created.config).to.deep.include({
        headers: { 'X-Auth-Token': '***', 'X-Tenant': '***' },
        token: '***',
      });
      const path = `/api/services/${created.id}`;
      const change = (config: object) => redacting.put(path, { config });
      const stored = async () => {
        const { config_encrypted } = (await findService(redacting.store, created.id)) ?? {};
        return JSON.parse(createSecretBox('a key for the tests').open(config_encrypted ?? '')) as object;
      };
      expectData(await change({ ...created.config, pool_size: 2 }));
      expect(await stored()).to.deep.include({ headers, token: 'the third secret' });
      expectData(await change({ headers: { 'X-Auth-Token': '***', 'X-New': 'a new one' } }));
      const changed = { 'X-Auth-Token': 'the first secret', 'X-New': 'a new one' };
      expect(await stored()).to.deep.include({ headers: changed });
      expectFailure(
        await change({ headers: { 'X-Other': '***' } }),
        'invalid_config',
        /config\.headers\.X-Other: .*there is none/,
      );
      // Elsewhere, they would be sent to another server.
      const moved = { base_url: 'https://evil.example', token: 'mine' };
      for (const more of [{}, { headers: { 'X-Auth-Token': '***' } }])
        expectFailure(
          await change({ ...moved, ...more }),
          'invalid_config',
          /config\.headers\.X-Auth-Token: has to be sent again, because config\.base_url changes/,
        );
      expectData(await change({ ...moved, headers: { 'X-Auth-Token': 'mine, too' } }));
      expectFailure(
        await redacting.post('/api/services', {
          ...body,
          config: { ...body.config, headers: { 'X-A': '***' } },
        }),
        'invalid_config',
        /config\.headers\.X-A: /,
      );
    });

    it('refuses a hidden secret of a service that has none stored', async () => {
      const config = { host: 'h', database: 'd', username: 'u' };
      const body = { name: 'no password', service_type: 'postgres', config };
      const { id } = expectData<Service>(
        await redacting.post('/api/services', { ...body, name: uniqueName('S') }),
        201,
      );
      expectFailure(
        await redacting.put(`/api/services/${id}`, { config: { ...config, password: '***' } }),
        'invalid_config',
        /config\.password: .*there is none/,
      );
    });
  });
});
