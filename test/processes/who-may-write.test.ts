/**
 * Every kind of object, written in every way by every role: what the plain request refuses, no apply allows, and no way
 * back of one.
 */
import { expect } from 'chai';
import type { Role } from '../../src/model/permission.js';
import { addUser, clientOf, makeToken } from '../support/access.js';
import { type ApplyShown, applyFiles } from '../support/applies.js';
import type { HttpClient, HttpResponse } from '../support/client.js';
import { expectData, expectFailure } from '../support/expect.js';
import type { Files } from '../support/plans.js';
import { type Stack, startStack } from '../support/processes.js';

const JWT = { issuer: 'https://issuer.example', audience: 'us', jwks_url: 'http://127.0.0.1:9/keys' };
const JWKS = { auth: { jwt: JWT } };
const LOOPBACK = { base_url: 'http://127.0.0.1:9' };

/** Members of an object that not everybody may write, and others that everybody may who may write it at all. */
interface Case {
  readonly what: string;
  readonly kind: 'service' | 'domain' | 'collection' | 'endpoint';
  readonly delicate: Readonly<Record<string, unknown>>;
  readonly harmless: Readonly<Record<string, unknown>>;
  /** Why even those are refused who may write such objects. */
  readonly refused?: RegExp;
  /** Members of which files have others than requests: what stands in files for what is stored. */
  readonly inFiles?: Readonly<Record<string, unknown>>;
}

const config = (service_type: string, of: object) => ({ service_type, config: of });
const CASES: readonly Case[] = [
  {
    ...({ what: 'a service whose secret of the installation goes elsewhere', kind: 'service' } as const),
    delicate: config('redis', { host: 'staging.example', password: { secret: 'DB' } }),
    harmless: config('redis', { host: 'production.example', password: { secret: 'DB' } }),
  },
  {
    ...({ what: 'a service whose stored password goes elsewhere', kind: 'service' } as const),
    delicate: config('redis', { host: 'staging.example', password: 'of the service' }),
    harmless: config('redis', { host: 'production.example', password: 'of the service' }),
    inFiles: { password: { stored: true } },
    refused: /password: has to be sent again, because config\.host changes/,
  },
  {
    ...({ what: 'a service that reaches private addresses', kind: 'service' } as const),
    delicate: config('http', { ...LOOPBACK, allow_private_addresses: true }),
    harmless: config('http', { ...LOOPBACK, allow_private_addresses: false }),
  },
  {
    ...({ what: 'a service with a file of this machine', kind: 'service' } as const),
    delicate: config('sqlite', { path: 'delicate.db' }),
    harmless: config('sqlite', { path: 'harmless.db' }),
  },
  {
    ...({ what: 'a service of every host', kind: 'service' } as const),
    delicate: { ...config('http', { base_url: 'https://a.example' }), domains: [] },
    harmless: config('http', { base_url: 'https://a.example' }),
  },
  ...(['domain', 'collection', 'endpoint'] as const).map((kind) => ({
    ...{ what: `a policy with keys at a private address (${kind})`, kind },
    delicate: { policies: JWKS },
    refused: /jwks_url: .*ALLOW_PRIVATE_URLS/,
    harmless: { policies: { cors: { origins: ['https://a.example'] } } },
  })),
  {
    ...({ what: 'limits of an endpoint above those of the operator', kind: 'endpoint' } as const),
    delicate: { limits: { timeout_ms: 20_000 } },
    refused: /limits\.timeout_ms: must be at most 10000.*REQUEST_TIMEOUT_MS/,
    harmless: { limits: { timeout_ms: 5_000 } },
  },
];

const LISTS = {
  service: 'services',
  domain: 'domains',
  collection: 'collections',
  endpoint: 'endpoints',
} as const;

/** Which cannot be changed, and which a request to change an object does not have. */
const KEY_MEMBERS = ['domain_id', 'service_type', 'host'];

describe('who may write what', function () {
  this.timeout(180_000);
  let stack: Stack;
  let admin: HttpClient;
  const people = new Map<string, HttpClient>();
  const ids = new Map<string, string>();
  /** The applies whose way back brings the delicate members of an object back, by its name. */
  const applies = new Map<string, string>();

  const hostOf = (name: string) => `${name}.own.example`;
  const pathOf = ({ kind }: Case, name?: string) =>
    `/api/${LISTS[kind]}${name === undefined ? '' : `/${ids.get(name)}`}`;
  /** As a request that creates it has it. */
  const bodyOf = ({ kind, ...members }: Case, name: string, which: 'delicate' | 'harmless') => {
    const host = hostOf(name);
    if (kind === 'service') return { name, domains: [host], ...members[which] };
    if (kind === 'domain') return { name, host, ...members[which] };
    if (kind === 'collection') return { name, domain_id: ids.get(`domain of ${name}`), ...members[which] };
    return { name, domain: host, method: 'GET', path: '/', ...members[which] };
  };
  /** As a request that changes it has it: what is stored is not sent. */
  const changesOf = (one: Case, name: string, which: 'delicate' | 'harmless') => {
    const { config: settings, ...members } = omit(bodyOf(one, name, which), KEY_MEMBERS);
    if (typeof settings !== 'object') return members;
    return { ...members, config: omit({ ...settings }, Object.keys(one.inFiles ?? {})) };
  };
  const folderOf = (one: Case, name: string, which: 'delicate' | 'harmless' | 'none'): Files => {
    const host = hostOf(name);
    const lists: Record<string, unknown[]> = {
      domains: one.kind === 'domain' ? [] : [{ host, name, stack: null }],
    };
    if (which !== 'none') {
      const { config: settings, ...members } = omit(bodyOf(one, name, which), [
        'domain_id',
        'path',
        'domain',
      ]);
      const object = {
        ...members,
        ...(one.kind === 'service' && { active: false, config: { ...(settings as object), ...one.inFiles } }),
        ...(one.kind === 'collection' && { host }),
        ...(one.kind === 'endpoint' && { host, route: '/', running: false }),
      };
      lists[LISTS[one.kind]] = [...(lists[LISTS[one.kind]] ?? []), object];
    }
    return { 'edge.yaml': JSON.stringify({ stack: name, ...lists }) };
  };

  const create = async (one: Case, name: string, which: 'delicate' | 'harmless', owner: string | null) => {
    if (one.kind !== 'domain') {
      const domain = await admin.post('/api/domains', { name, host: hostOf(name) });
      ids.set(`domain of ${name}`, expectData<{ id: string }>(domain, 201).id);
    }
    const made = await admin.post(pathOf(one), { ...bodyOf(one, name, which), stack: owner });
    ids.set(name, expectData<{ id: string }>(made, 201).id);
  };
  /** Takes what is delicate away. */
  const applied = async (one: Case, name: string, which: 'harmless' | 'none') => {
    const done = await applyFiles(admin, folderOf(one, name, which), which === 'none' ? '&prune=true' : '');
    applies.set(name, expectData<ApplyShown>(done).id);
  };
  before(async () => {
    const env = { ALLOW_PRIVATE_URLS: 'true', SECRET_KEY: 'a key of these tests only' };
    stack = await startStack({ processes: ['web', 'worker'], env });
    const { api } = stack;
    const root = await addUser(api, {}, { email: 'admin@who.test', role: 'admin' });
    admin = clientOf(api, root);
    expectData(await admin.put('/api/secrets/DB', { value: 'of staging' }));
    for (const [at, one] of CASES.entries()) {
      await create(one, `changed-${at}`, 'delicate', `changed-${at}`);
      await create(one, `gone-${at}`, 'delicate', `gone-${at}`);
      await create(one, `twin-${at}`, 'harmless', null);
      await applied(one, `changed-${at}`, 'harmless');
      await applied(one, `gone-${at}`, 'none');
    }
    // Later the operator is stricter, and the secret is another one.
    expectData(await admin.put('/api/secrets/DB', { value: 'of production' }));
    await stack.processes.get('web')?.end();
    await stack.start('web', { ALLOW_PRIVATE_URLS: 'false', REQUEST_TIMEOUT_MS: '10000' });
    const domains = [...ids.keys()].filter((name) => !name.startsWith('domain of')).map(hostOf);
    const add = async (as: string, user: { role: Role; domains?: string[] }) => {
      const email = `${as.replaceAll(' ', '-')}@who.test`;
      people.set(as, clientOf(api, await addUser(api, root, { email, ...user })));
    };
    people.set('an admin', admin);
    await add('an editor', { role: 'editor' });
    await add('a limited editor', { role: 'editor', domains });
    await add('a viewer', { role: 'viewer' });
    const reads = ['domains', 'collections', 'endpoints', 'services', 'variables', 'jobs'] as const;
    const permissions = [...reads.map((name) => `${name}:read` as const), 'endpoints:write'] as const;
    people.set('a token for endpoints', clientOf(api, await makeToken(api, root, permissions)));
  });
  after(() => stack?.close());

  const rollBack = (name: string, who: HttpClient) =>
    who.post(`/api/applies/${applies.get(name)}/rollback?dry_run=true`);

  /** A request to change the twin of a delicate object, which is taken back. */
  const tryToChange = async (one: Case, name: string, who: HttpClient) => {
    const answer = await who.put(pathOf(one, name), changesOf(one, name, 'delicate'));
    if (isAllowed(answer)) expectData(await admin.put(pathOf(one, name), changesOf(one, name, 'harmless')));
    return answer;
  };
  /** A request to create one like it. */
  const tryToCreate = async (one: Case, name: string, who: HttpClient) => {
    const body = bodyOf(one, name, 'delicate');
    const answer = await who.post(pathOf(one), one.kind === 'endpoint' ? { ...body, path: '/new' } : body);
    if (!isAllowed(answer)) return answer;
    expectData(await admin.delete(`${pathOf(one)}/${expectData<{ id: string }>(answer, 201).id}`));
    return answer;
  };

  for (const [at, one] of CASES.entries())
    it(`whoever may not write ${one.what} cannot do it by an apply, or by the way back of one`, async () => {
      for (const [role, who] of people) {
        const put = await tryToChange(one, `twin-${at}`, who);
        const post = await tryToCreate(one, `gone-${at}`, who);
        const files = folderOf(one, `changed-${at}`, 'delicate');
        const apply = await who.post('/api/apply?dry_run=true', { files });
        const [changed, gone] = [await rollBack(`changed-${at}`, who), await rollBack(`gone-${at}`, who)];
        const seen = Object.entries({ put, post, apply, changed, gone }).map(
          ([way, { status }]) => `${way} ${status}`,
        );
        const told = `${role}: ${seen.join(', ')}`;
        for (const refused of [put, post, apply, changed, gone].filter((answer) => !isAllowed(answer)))
          if (![403, 404].includes(refused.status))
            expect((refused.body as { error: string }).error, told).to.match(one.refused ?? /^$/);
        if (!isAllowed(put)) expect([apply, changed].filter(isAllowed), told).to.deep.equal([]);
        if (!isAllowed(post)) expect(isAllowed(gone), told).to.equal(false);
        if (isAllowed(put) && role === 'an admin') expect(isAllowed(changed), told).to.equal(true);
      }
    });

  it('a rollback that somebody may not do says which object, and which permission', async () => {
    const editor = people.get('an editor') as HttpClient;
    for (const name of ['changed-0', 'gone-0', 'changed-1']) {
      const refused = await rollBack(name, editor);
      expectFailure(refused, 'forbidden', new RegExp(`service "${name}".*secrets:write`));
      expect(refused.body).to.have.nested.property('details.permission', 'secrets:write');
    }
  });

  it('an endpoint that comes back with its secrets is brought back by who may set secrets, and by nobody else', async () => {
    const one = CASES.find(({ kind }) => kind === 'endpoint') ?? expect.fail('no case of endpoints');
    await create(one, 'secretive', 'harmless', 'secretive');
    expectData(await admin.put(`${pathOf(one, 'secretive')}/secrets/PASSWORD`, { value: 'of the admin' }));
    await applied(one, 'secretive', 'none');
    const refused = await rollBack('secretive', people.get('an editor') as HttpClient);
    expectFailure(refused, 'forbidden', /comes back with its secrets.*secrets:write/);
    expectData(await rollBack('secretive', admin));
  });
});

function isAllowed({ status }: HttpResponse): boolean {
  return status === 200 || status === 201;
}

function omit(members: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)));
}
