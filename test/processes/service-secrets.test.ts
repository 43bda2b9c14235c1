/** Secrets of services are visible to their backend only, and, unless hidden, to users of the API. */
import { expect } from 'chai';
import { SERVICE_TYPES, type ServiceType } from '../../src/model/service-configs.js';
import { startRedisBackend } from '../support/backends/redis.js';
import { startSmtpBackend } from '../support/backends/smtp.js';
import { freePort } from '../support/ports.js';
import { type Stack, startStack } from '../support/processes.js';
import { everythingIn, expectNone, expectNoneInProcesses, secret } from '../support/secrets.js';
import { bind, connectAs, createEndpoint, createService, SECRET_KEY } from '../support/test-services.js';

describe('secrets of services', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack({ env: { SECRET_KEY, LOG_LEVEL: 'debug' } });
  });
  after(() => stack.close());

  it('writes secrets of services to no log, queue, table, error, metric or process argument', async () => {
    const answers: unknown[] = [];
    const post = async (path: string, body?: unknown) => {
      const { body: answer } = await stack.api.post(path, body);
      answers.push(answer);
      return answer;
    };
    const endpointId = await createEndpoint(stack.api, '/secrets');
    const client = await connectAs(stack, endpointId);
    const redis = await startRedisBackend({ password: secret('right') });
    const smtp = await startSmtpBackend();
    try {
      const wrong = { ...redis.config, password: secret('wrong') };
      const configs = await configsThatFail();
      const all: [ServiceType, object][] = [
        ...SERVICE_TYPES.map((type): [ServiceType, object] => [type, configs[type]]),
        ['redis', redis.config],
        ['redis', wrong],
        ['email', { ...smtp.config, password: secret('mail') }],
      ];
      for (const [at, [type, config]] of all.entries()) {
        const id = await createService(stack.api, type, config, `${type} ${at}`);
        await bind(stack.api, endpointId, id, `pool-${at}`);
        await post(`/api/services/${id}/test`);
        await post(`/api/services/${id}/activate`);
        for (const op of ['get', 'query', 'send', 'begin', 'unknown']) {
          const { payload, ...head } = await client.send({ pool: `pool-${at}`, op }, '{}');
          answers.push(head, String(payload));
        }
        await post(`/api/services/${id}/deactivate`);
      }
      // Configs that are refused are not shown in the refusal.
      await post('/api/services', {
        name: 'S',
        service_type: 'postgres',
        config: { host: 'h', password: [secret('as a list')] },
      });

      expectNone('an answer', JSON.stringify(answers));
      expectNone('the metrics', String((await stack.api.get('/metrics')).body));
      expectNone('the queue dashboard', String((await stack.api.get('/queues/api/queues')).body));
      await expectNoneInProcesses(stack);
      expectNone('the database', await everythingIn(stack.databaseUrl));
    } finally {
      await client.close();
      await redis.remove();
      await smtp.remove();
    }
  });

  for (const [form, text] of [
    ['it is', secret('x')],
    ['JSON', JSON.stringify(JSON.stringify({ password: secret('x') }))],
    ['a part of a URL', encodeURIComponent(secret('x'))],
    ['a form', new URLSearchParams({ password: secret('x') }).toString()],
    ['base64', Buffer.from(secret('x')).toString('base64')],
    ['base64 for URLs', Buffer.from(secret('x')).toString('base64url')],
    ['AUTH PLAIN', Buffer.from(`\0somebody\0${secret('x')}`).toString('base64')],
    ['AUTH PLAIN of another user', Buffer.from(`\0user\0${secret('x')}`).toString('base64')],
    ['Basic authentication', Buffer.from(`me:${secret('x')}`).toString('base64')],
    ['hexadecimal digits', Buffer.from(secret('x')).toString('hex')],
  ] as const) {
    it(`recognizes a secret in a log that is written as ${form}`, () => {
      expect(() => expectNone('a log', `before ${text} after`)).to.throw(/a secret is in a log/);
    });
  }
});

/** Configs whose backends are away, each with a secret wherever there is room for one. */
async function configsThatFail(): Promise<Record<ServiceType, object>> {
  const at = { host: '127.0.0.1', port: await freePort() };
  const login = { username: 'somebody', password: secret('password') };
  return {
    sqlite: { path: 'no/such/folder/file.db' },
    postgres: { ...at, ...login, database: 'd' },
    mysql: { ...at, ...login, database: 'd' },
    redis: { ...at, password: login.password },
    mongodb: {
      uri: `mongodb://somebody:${encodeURIComponent(secret('uri'))}@127.0.0.1:${at.port}/d?serverSelectionTimeoutMS=500`,
    },
    objstore: {
      endpoint: `127.0.0.1:${at.port}`,
      access_key: 'somebody',
      secret_key: secret('key'),
      bucket: 'b',
    },
    memcached: at,
    ftp: { ...at, ...login, private_key: secret('private key'), protocol: 'sftp' },
    http: {
      base_url: `http://127.0.0.1:${at.port}`,
      ...login,
      api_key: secret('api key'),
      headers: { 'X-Auth-Token': encodeURIComponent(secret('header')) },
      allow_private_addresses: true,
    },
    email: { ...at, ...login, from_address: 'a@example.com' },
  };
}
