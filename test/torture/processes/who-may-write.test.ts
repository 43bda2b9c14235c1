/**
 * Every kind of object, written in every way by every role, and by tokens that may do less than their user: what the
 * plain request refuses, no apply allows, no rollback of one, and no import.
 */
import { expect } from 'chai';
import { PERMISSIONS, type Permission, type Role } from '../../../src/model/permission.js';
import { openDatabase } from '../../../src/store/database.js';
import { addUser, clientOf, makeToken } from '../../support/access.js';
import { type ApplyShown, applyFiles, showApply } from '../../support/applies.js';
import type { HttpClient, HttpResponse } from '../../support/client.js';
import { SMALL_SPEC } from '../../support/domain-objects.js';
import { eventually } from '../../support/eventually.js';
import { expectData, expectFailure } from '../../support/expect.js';
import { multipart } from '../../support/form.js';
import { ANYTHING } from '../../support/handler-sources.js';
import type { Files } from '../../support/plans.js';
import { type Stack, startStack } from '../../support/processes.js';
import {
  BOUND,
  CASES,
  type Case,
  config,
  ENDPOINT,
  LISTS,
  PARTS,
  UNDONE,
} from '../../support/written-objects.js';
import { zipOf } from '../../support/zip.js';

/** A domain that most are not limited to. */
const ELSEWHERE = 'elsewhere.example';
const isOfDomains = (permission: Permission) => !/^(users|audit|metrics|queues):/.test(permission);

/** Which cannot be changed, and which a request to change an object does not have. */
const KEY_MEMBERS = ['domain_id', 'service_type', 'host'];

describe('who may write what', function () {
  this.timeout(180_000);
  let stack: Stack;
  let admin: HttpClient;
  const people = new Map<string, HttpClient>();
  const ids = new Map<string, string>();
  /** The applies whose rollback brings the delicate members of an object back, by its name. */
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
    const files: Record<string, string> = {};
    const lists: Record<string, unknown[]> = {
      domains: one.kind === 'domain' ? [] : [{ host, name, stack: null }],
    };
    if (which !== 'none') {
      const {
        config: settings,
        code,
        ...members
      } = omit(bodyOf(one, name, which), ['domain_id', 'path', 'domain']);
      const object = {
        ...(one.kind === 'service' ? { active: false } : {}),
        ...(one.kind === 'endpoint' ? { running: false } : {}),
        ...members,
        ...(code !== undefined && { handler: 'handler.rs' }),
        ...(one.kind === 'service' && { config: { ...(settings as object), ...one.inFiles } }),
        ...(one.kind === 'collection' && { host }),
        ...(one.kind === 'endpoint' && { host, route: '/' }),
      };
      lists[LISTS[one.kind]] = [...(lists[LISTS[one.kind]] ?? []), object];
      if (typeof code === 'string') files['handler.rs'] = code;
    }
    return { ...files, 'edge.yaml': JSON.stringify({ stack: name, ...lists }) };
  };

  const create = async (one: Case, name: string, which: 'delicate' | 'harmless', owner: string | null) => {
    if (one.kind !== 'domain') {
      const domain = await admin.post('/api/domains', { name, host: hostOf(name) });
      ids.set(`domain of ${name}`, expectData<{ id: string }>(domain, 201).id);
    }
    const made = await admin.post(pathOf(one), { ...bodyOf(one, name, which), stack: owner });
    ids.set(name, expectData<{ id: string }>(made, 201).id);
  };
  const idOf = async (made: Promise<HttpResponse>) => expectData<{ id: string }>(await made, 201).id;
  /** Takes what is delicate away. */
  const applied = async (one: Case, name: string, which: 'delicate' | 'harmless' | 'none') => {
    const done = await applyFiles(admin, folderOf(one, name, which), which === 'none' ? '&prune=true' : '');
    applies.set(name, expectData<ApplyShown>(done).id);
  };
  before(async () => {
    const env = { ALLOW_PRIVATE_URLS: 'true', SECRET_KEY: 'a key of these tests only' };
    stack = await startStack({ env });
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
    ids.set(
      BOUND,
      await idOf(
        admin.post('/api/services', { name: BOUND, domains: [], ...config('redis', { host: 'h' }) }),
      ),
    );
    for (const [at, one] of PARTS.entries()) {
      await create(one, `part-${at}`, 'harmless', `part-${at}`);
      await applied(one, `part-${at}`, 'delicate');
      await applied(one, `part-${at}`, 'harmless');
    }
    await create(ENDPOINT, 'imported', 'harmless', null);
    ids.set(
      'domain of elsewhere',
      await idOf(admin.post('/api/domains', { name: ELSEWHERE, host: ELSEWHERE })),
    );
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
    const addToken = async (as: string, more: readonly Permission[], hosts: readonly string[] = []) => {
      const permissions = [...new Set([...reads.map((name) => `${name}:read` as const), ...more])];
      people.set(as, clientOf(api, await makeToken(api, root, permissions, hosts)));
    };
    await addToken('a token for endpoints', ['endpoints:write']);
    await addToken('a token for variables', ['variables:write']);
    await addToken('a token for deployments', ['endpoints:deploy']);
    await addToken('a token for endpoints and their deployment', ['endpoints:write', 'endpoints:deploy']);
    await addToken('a token for endpoints and variables', ['endpoints:write', 'variables:write']);
    await addToken('a token for endpoints and schedules', ['endpoints:write', 'jobs:write']);
    await addToken('a token for domains and endpoints', ['domains:write', 'endpoints:write']);
    await addToken('a token for services and endpoints', ['services:write', 'endpoints:write']);
    await addToken('a token for imports', ['imports:write', 'imports:read']);
    await addToken('a token for imports and endpoints', ['imports:write', 'endpoints:write']);
    await addToken('a token of another domain', PERMISSIONS.filter(isOfDomains), [ELSEWHERE]);
  });
  after(() => stack?.close());

  const sendBundle = (who: HttpClient, domain: string, files: Record<string, string>) => {
    const zip = zipOf({ 'openapi.json': SMALL_SPEC, 'handlers/i.rs': '// i', ...files });
    const { body, headers } = multipart([{ name: 'bundle', filename: 'a.zip', content: zip }]);
    return who.send('POST', `/api/import/bundle?domain=${domain}&dry_run=true`, { body, headers });
  };
  const rollBack = (name: string, who: HttpClient) =>
    who.post(`/api/applies/${applies.get(name)}/rollback?dry_run=true`);

  /** A request to change the twin of a delicate object, which is rolled back. */
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
    it(`whoever may not write ${one.what} cannot do it by an apply, or by the rollback of one`, async () => {
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

  for (const [at, one] of PARTS.entries())
    it(`whoever may not write ${one.what} cannot do it by an apply, or by the rollback of one`, async () => {
      const name = `part-${at}`;
      const url = `${pathOf(one, name)}/${one.path}`;
      for (const [role, who] of people) {
        const apply = await who.post('/api/apply?dry_run=true', { files: folderOf(one, name, 'delicate') });
        const back = await rollBack(name, who);
        const plain = await who.send(one.method, url, { body: one.body(ids.get(BOUND)) });
        const told = `${role}: plain ${plain.status}, apply ${apply.status}, back ${back.status}`;
        if (!isAllowed(plain)) {
          expect(plain.status, told).to.be.oneOf([403, 404]);
          expect([apply, back].filter(isAllowed), told).to.deep.equal([]);
          continue;
        }
        if (role === 'an admin') expect([apply, back].every(isAllowed), told).to.equal(true);
        const { data } = plain.body as { data: { id?: string; service_id?: string } };
        const made = data.service_id ?? data.id;
        const undo = () => {
          if (one.undo !== undefined) return admin.post(`${pathOf(one, name)}/${one.undo}`);
          return one.method === 'PUT' ? admin.put(url, {}) : admin.delete(`${url}/${made}`);
        };
        expect(isAllowed(await undo()), told).to.equal(true);
      }
    });

  it('whoever may not set secrets changes and deletes none by variables, or by an apply', async () => {
    const one = PARTS[2] ?? expect.fail('there are no variables of endpoints');
    await create(one, 'kept', 'harmless', 'kept');
    const at = pathOf(one, 'kept');
    expectData(await admin.put(`${at}/secrets/PASSWORD`, { value: 'of the admin' }));
    const secrets = async () => expectData<object[]>(await admin.get(`${at}/secrets`));
    const before = await secrets();
    const named = { ...one, delicate: { variables: { PASSWORD: 'x' } } };
    for (const [role, who] of people) {
      const plain = await who.put(`${at}/secrets/OTHER`, { value: 'x' });
      expect(isAllowed(plain), role).to.equal(role === 'an admin');
      if (isAllowed(plain)) continue;
      for (const body of [{ PASSWORD: 'x' }, { PASSWORD: null }])
        await who.send('PATCH', `${at}/variables`, { body });
      for (const body of [{ PASSWORD: 'x' }, {}]) await who.put(`${at}/variables`, body);
      const apply = await who.post('/api/apply?dry_run=true', { files: folderOf(named, 'kept', 'delicate') });
      expect(isAllowed(apply), role).to.equal(false);
      expectData(await admin.put(`${at}/variables`, {}));
    }
    expectData(await admin.delete(`${at}/secrets/OTHER`));
    expect(await secrets()).to.deep.equal(before);
  });

  it('whoever may not write the code of an endpoint deploys none that they send', async () => {
    await create(ENDPOINT, 'deployed', 'harmless', null);
    const path = pathOf(ENDPOINT, 'deployed');
    for (const [role, who] of people) {
      const put = await who.put(path, { code: ANYTHING });
      const deploy = await who.post(`${path}/deploy`, { code: ANYTHING });
      const told = `${role}: put ${put.status}, deploy ${deploy.status}`;
      if (!isAllowed(put)) expect(deploy.status, told).to.be.oneOf([403, 404]);
      if (role === 'an admin') expect(isAllowed(deploy), told).to.equal(true);
    }
    // What is there already may be deployed.
    expectData(await (people.get('a token for deployments') as HttpClient).post(`${path}/deploy`));
  });

  it('whoever may not write endpoints of a host moves none to it, or away from it', async () => {
    for (const [role, who] of people)
      for (const [from, to] of [
        [hostOf('imported'), ELSEWHERE],
        [ELSEWHERE, hostOf('imported')],
      ] as const) {
        const endpoint = { name: 'm', method: 'GET', path: '/m' };
        const there = await idOf(admin.post('/api/endpoints', { ...endpoint, domain: from }));
        const moved = await who.put(`/api/endpoints/${there}`, { domain: to });
        expectData(await admin.delete(`/api/endpoints/${there}`));
        const may = [];
        for (const domain of [from, to]) {
          const post = await who.post('/api/endpoints', { ...endpoint, domain });
          may.push(isAllowed(post));
          if (isAllowed(post))
            expectData(await admin.delete(`/api/endpoints/${expectData<{ id: string }>(post, 201).id}`));
        }
        expect(isAllowed(moved), `${role}, ${from} to ${to}`).to.equal(may.every(Boolean));
      }
  });

  it('whoever may not write endpoints, collections and bindings cannot do it by an import', async () => {
    const host = hostOf('imported');
    const services: Record<string, string> = {};
    for (const of of [host, ELSEWHERE]) {
      const service = { name: `db of ${of}`, domains: [of], ...config('redis', { host: 'h' }) };
      services[of] = await idOf(admin.post('/api/services', service));
    }
    for (const [role, who] of people)
      for (const [domain, domain_id] of [
        [host, ids.get('domain of imported')],
        [ELSEWHERE, ids.get('domain of elsewhere')],
      ] as const) {
        const remove = async (path: string, made: HttpResponse) => {
          if (!isAllowed(made)) return;
          expectData(await admin.delete(`${path}/${expectData<{ id: string }>(made, 201).id}`));
        };
        const endpoint = { name: 'i', domain, method: 'GET', path: '/i' };
        const post = await who.post('/api/endpoints', endpoint);
        await remove('/api/endpoints', post);
        const collection = await who.post('/api/collections', { name: 'I', domain_id });
        await remove('/api/collections', collection);
        const into = { spec: SMALL_SPEC, domain };
        const document = await who.post('/api/import/openapi?dry_run=true', into);
        const titled = await who.post('/api/import/openapi?dry_run=true', {
          ...{ ...into, domain_id, create_collection: true },
        });
        // Replaces the code of an endpoint that is there, and binds a service to it.
        const there = await idOf(admin.post('/api/endpoints', { ...endpoint, code: '// of the admin' }));
        const put = await who.put(`/api/endpoints/${there}`, { code: '// i' });
        const bind = { service_id: services[domain], pool_id: 'db' };
        const bound = await who.post(`/api/endpoints/${there}/services`, bind);
        const bundle = await sendBundle(who, domain, {
          'bundle.yaml': `bindings: { db: "db of ${domain}" }`,
        });
        const seen = Object.entries({ post, collection, put, bound, document, titled, bundle });
        const told = `${role}, ${domain}: ${seen.map(([way, { status }]) => `${way} ${status}`).join(', ')}`;
        if (!isAllowed(post)) expect([document, titled, bundle].filter(isAllowed), told).to.deep.equal([]);
        if (!isAllowed(collection)) expect(isAllowed(titled), told).to.equal(false);
        if (!isAllowed(put) || !isAllowed(bound)) expect(isAllowed(bundle), told).to.equal(false);
        if (role === 'an admin') expect([document, titled, bundle].every(isAllowed), told).to.equal(true);
        expectData(await admin.delete(`/api/endpoints/${there}`));
      }
  });

  it('undoing a failed apply brings back what was there before, and nothing that others have changed since', async () => {
    const editor = people.get('an editor') as HttpClient;
    const store = openDatabase(stack.databaseUrl, () => undefined);
    try {
      for (const one of UNDONE) {
        const [name, other] = [`undone-${one.kind}`, `undone-later-${one.kind}`];
        for (const each of [name, other]) {
          await create(one, each, 'harmless', each);
          const done = await applyFiles(editor, folderOf(one, each, 'delicate'));
          const { id } = expectData<ApplyShown>(done);
          if (each === other) expectData(await admin.put(pathOf(one, each), one.later));
          // As if it had failed after it was written.
          await store.knex.raw(
            `UPDATE applies SET state = 'undoing', finished_at = NULL, worker_id = NULL, attempt = attempt + 1,
                    queued_at = clock_timestamp() - interval '1 minute', error_code = 'internal_error', error = ''
              WHERE id = ?`,
            [id],
          );
          await eventually(async () => expect((await showApply(admin, id)).state).to.equal('undone'));
        }
        const shown = async (each: string) => expectData<object>(await admin.get(pathOf(one, each)));
        expect(await shown(name)).to.deep.include(one.harmless);
        expect(await shown(other)).to.deep.include(one.later);
      }
    } finally {
      await store.close();
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

  it('a service that comes back with a password of its config is brought back by who may set secrets, and by nobody else', async () => {
    const stack = 'with-password';
    const service = { name: stack, stack, ...config('redis', { host: 'h', password: 'of the admin' }) };
    await idOf(admin.post('/api/services', service));
    const empty = { 'edge.yaml': JSON.stringify({ stack }) };
    const { id } = expectData<ApplyShown>(await applyFiles(admin, empty, '&prune=true'));
    const rollback = (who: HttpClient) => who.post(`/api/applies/${id}/rollback?dry_run=true`);
    const refused = await rollback(people.get('an editor') as HttpClient);
    expectFailure(refused, 'forbidden', /with-password.*it had secrets \(password\).*secrets:write/);
    expectData(await rollback(admin));
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
