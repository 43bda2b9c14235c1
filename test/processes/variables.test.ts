/** Variables and secrets over HTTP, with real processes: what handlers find in their environment. */
import { expect } from 'chai';
import { openDatabase } from '../../src/store/database.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure, NO_ID, TIMESTAMP } from '../support/expect.js';
import { call } from '../support/http.js';
import { outcomes, startLoad } from '../support/load.js';
import { must, type Stack, startStack } from '../support/processes.js';

const HOST = 'variables.example';
const READS = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    let name = req.query_param("name").cloned().unwrap_or_default();
    match name.as_str() {
        "*" => Response::json(200, json!(std::env::vars().map(|(name, _)| name).collect::<Vec<_>>())),
        name => Response::text(200, std::env::var(name).unwrap_or_else(|_| "unset".into())),
    }
}
handler_loop!(handle);
`;

describe('variables and secrets', function () {
  this.timeout(120_000);
  let stack: Stack;
  let domain: string;
  let collection: string;
  let endpoint: string;
  before(async () => {
    stack = await startStack();
    const create = async (path: string, body: object) =>
      expectData<{ id: string }>(await stack.api.post(path, body), 201).id;
    domain = `/api/domains/${await create('/api/domains', { name: 'D', host: HOST })}`;
    const collectionId = await create('/api/collections', { name: 'C', domain_id: domain.split('/').pop() });
    collection = `/api/collections/${collectionId}`;
    endpoint = `/api/endpoints/${await stack.deploy({
      ...{ path: '/read', code: READS, domain: HOST },
      collection_id: collectionId,
    })}`;
  });
  after(() => stack?.close());

  const put = (path: string, body: object) => stack.api.put(path, body);
  const read = async (name: string) => {
    const url = `${stack.gatewayUrl}/read?name=${encodeURIComponent(name)}`;
    const { status, text } = await call(url, { headers: { host: HOST } });
    expect(status, text).to.equal(200);
    return text;
  };
  const reads = async (name: string, value: string) => expect(await read(name)).to.equal(value);

  it('passes the nearest variable of endpoint, collection and domain to the handler', async () => {
    expect(await read('WHERE')).to.equal('unset');
    expect(expectData(await put(`${domain}/variables`, { WHERE: 'domain', D: 'ä "$x"\n2' }))).to.deep.equal({
      D: 'ä "$x"\n2',
      WHERE: 'domain',
    });
    await reads('WHERE', 'domain');
    expect(await read('D')).to.equal('ä "$x"\n2');
    expectData(await put(`${collection}/variables`, { WHERE: 'collection' }));
    await reads('WHERE', 'collection');
    expectData(await put(`${endpoint}/secrets/WHERE`, { value: 'a secret of the endpoint' }));
    await reads('WHERE', 'a secret of the endpoint');

    const environment = expectData<{ name: string; updated_at: string }[]>(
      await stack.api.get(`${endpoint}/environment`),
    );
    for (const { updated_at } of environment) expect(updated_at).to.match(TIMESTAMP);
    expect(environment.map(({ updated_at: _, ...entry }) => entry)).to.deep.equal([
      { name: 'D', secret: false, scope: 'domain', owner_id: domain.split('/').pop() },
      { name: 'WHERE', secret: true, scope: 'endpoint', owner_id: endpoint.split('/').pop() },
    ]);
    const secrets = expectData<object[]>(await stack.api.get(`${endpoint}/secrets`));
    expect(secrets).to.have.length(1);
    expect(secrets[0])
      .to.deep.include({ name: 'WHERE', actor: { kind: 'anonymous', address: '127.0.0.1' } })
      .and.not.have.property('value');
    expect(expectData(await stack.api.get(`${endpoint}/variables`))).to.deep.equal({});

    expectData(await stack.api.delete(`${endpoint}/secrets/WHERE`));
    await reads('WHERE', 'collection');
    expectData(await put(`${collection}/variables`, {}));
    await reads('WHERE', 'domain');
    expectData(await put(`${domain}/variables`, {}));
    await reads('WHERE', 'unset');
  });

  it('passes the variables of an endpoint to its handler, and none of the gateway', async () => {
    // Names in small letters are those of the script that sets its limits, too.
    expectData(await put(`${endpoint}/variables`, { MINE: '1', processes: 'mine' }));
    await reads('MINE', '1');
    expect(await read('processes')).to.equal('mine');
    const names = (JSON.parse(await read('*')) as string[]).filter((name) => !name.startsWith('EDGE_'));
    expect(names).to.include.members(['MINE']);
    for (const name of names) expect(name).not.to.match(/DATABASE|SECRET|API_KEY|REDIS/);
  });

  it('passes changed variables to running handlers without a failed request', async () => {
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: 4,
      request: () => ({ path: '/read?name=TURN', headers: { host: HOST }, text: /^(unset|\d+)$/ }),
    });
    for (let turn = 0; turn < 10; turn++) {
      expectData(await put(`${endpoint}/variables`, { TURN: String(turn) }));
      await reads('TURN', String(turn));
    }
    expect(outcomes(await load.stop())).to.deep.equal({});
    const pid = async () => ((await must(stack.api.get(endpoint))) as { pid: number }).pid;
    const before = await pid();
    expectData(await put(`${endpoint}/variables`, { TURN: '9' }));
    expectData(await put(`${collection}/variables`, { OTHER: '1' }));
    await reads('OTHER', '1');
    const after = await pid();
    expect(after).not.to.equal(before);
    expectData(await put(`${endpoint}/variables`, { TURN: '9' }));
    expectData(await put(`${domain}/variables`, { LAST: '1' }));
    await reads('LAST', '1');
    expect(await read('TURN')).to.equal('9');
  });

  it('changes single variables by PATCH, also at the same time, and deletes those set to null', async () => {
    const patch = (body: unknown, owner = endpoint) =>
      stack.api.send('PATCH', `${owner}/variables`, { body });
    expectData(await put(`${endpoint}/variables`, { KEPT: 'kept', CHANGED: 'before', OLD: 'old' }));
    expectData(await put(`${endpoint}/secrets/HIDDEN`, { value: 's' }));
    const names = Array.from({ length: 8 }, (_, at) => `AT_ONCE_${at}`);
    const answers = await Promise.all([
      ...names.map((name) => patch({ [name]: 'x' })),
      patch({ CHANGED: 'after', OLD: null, NEVER: null }),
    ]);
    for (const answer of answers) expectData(answer);
    const expected = {
      KEPT: 'kept',
      CHANGED: 'after',
      ...Object.fromEntries(names.map((name) => [name, 'x'])),
    };
    expect(expectData(await stack.api.get(`${endpoint}/variables`))).to.deep.equal(expected);
    for (const name of ['KEPT', 'CHANGED', 'OLD'])
      await reads(name, { KEPT: 'kept', CHANGED: 'after' }[name] ?? 'unset');
    expectFailure(await patch({ KEPT: 'x', HIDDEN: null }), 'name_is_secret', /HIDDEN/);
    expectFailure(await patch({ KEPT: 'x', PATH: null }), 'invalid_input', /PATH/);
    expectFailure(await patch({ KEPT: 'x', A: 1 }), 'invalid_input', /A/);
    expectFailure(await patch({ LARGE: 'x'.repeat(64 * 1024 + 1) }), 'invalid_input', /65537 bytes/);
    expectFailure(await patch({}, `/api/domains/${NO_ID}`), 'not_found');
    expect(expectData(await patch({}))).to.deep.equal(expected);
    expectData(await put(`${endpoint}/variables`, {}));
    expectData(await stack.api.delete(`${endpoint}/secrets/HIDDEN`));
  });

  it('keeps the current value of a secret after a rollback to an earlier version', async () => {
    expectData(await put(`${endpoint}/secrets/KEY`, { value: 'old key' }));
    await reads('KEY', 'old key');
    expectData(await stack.api.post(`${endpoint}/deploy`, { code: `${READS}// second\n` }));
    expectData(await put(`${endpoint}/secrets/KEY`, { value: 'rotated key' }));
    await reads('KEY', 'rotated key');
    expect(expectData(await stack.api.post(`${endpoint}/rollback`))).to.include({ version: 1 });
    expect(await read('KEY')).to.equal('rotated key');
  });

  it('refuses variables and secrets whose name or value is not valid, and changes nothing', async () => {
    expectData(await put(`${endpoint}/variables`, { KEPT: '1' }));
    expectData(await put(`${endpoint}/secrets/IS_SECRET`, { value: 's' }));
    const state = async () => [
      expectData(await stack.api.get(`${endpoint}/variables`)),
      expectData(await stack.api.get(`${endpoint}/secrets`)),
    ];
    const before = await state();
    for (const name of [
      ...['', '1A', 'A=B', 'A B', 'A-B', 'Ä', 'A\n', 'x'.repeat(129)],
      ...[
        'LD_PRELOAD',
        'EDGE_SOCKET',
        'PATH',
        'HOME',
        'TMPDIR',
        'MALLOC_ARENA_MAX',
        'IFS',
        'BASH_ENV',
        'PS4',
        'PPID',
        '_',
        '__proto__',
      ],
    ]) {
      expectFailure(
        await put(`${endpoint}/variables`, { KEPT: '2', [name]: 'x' }),
        'invalid_input',
        /must|reserved|is not accepted/,
      );
      if (name === '') continue;
      const path = `${endpoint}/secrets/${encodeURIComponent(name)}`;
      expectFailure(await put(path, { value: 'x' }), 'invalid_input', /must|reserved/);
    }
    const large = 'x'.repeat(64 * 1024);
    expectData(await put(`${collection}/variables`, { LARGE: large }));
    await reads('LARGE', large);
    expectData(await put(`${collection}/variables`, {}));
    expectFailure(await put(`${endpoint}/variables`, { LARGE: `${large}x` }), 'invalid_input', /65537 bytes/);
    const many = Object.fromEntries(
      Array.from({ length: 5 }, (_, at) => [`MANY_${at}`, large.slice(0, 60_000)]),
    );
    expectFailure(await put(`${endpoint}/variables`, many), 'invalid_input', /at most 262144 together/);
    expectFailure(await put(`${endpoint}/variables`, { A: 1 }), 'invalid_input', /A/);
    expectFailure(await put(`${endpoint}/variables`, { A: 'a\u0000b' }), 'invalid_input');
    expectFailure(await put(`${endpoint}/variables`, ['A']), 'invalid_input');
    expectFailure(await put(`${endpoint}/variables`, { IS_SECRET: 'x' }), 'name_is_secret', /IS_SECRET/);
    expectFailure(await put(`${endpoint}/secrets/A`, {}), 'invalid_input', /value/);
    expectFailure(await stack.api.delete(`${endpoint}/secrets/NONE`), 'not_found', /secret/);
    for (const resource of ['domains', 'collections', 'endpoints']) {
      const path = `/api/${resource}/${NO_ID}`;
      expectFailure(await stack.api.get(`${path}/variables`), 'not_found');
      expectFailure(await put(`${path}/variables`, {}), 'not_found');
      expectFailure(await stack.api.get(`${path}/secrets`), 'not_found');
      expectFailure(await put(`${path}/secrets/A`, { value: 'x' }), 'not_found');
      expectFailure(await stack.api.delete(`${path}/secrets/A`), 'not_found');
    }
    expectFailure(await stack.api.get(`/api/endpoints/${NO_ID}/environment`), 'not_found');
    expect(await state()).to.deep.equal(before);
  });

  it('refuses more than 256 KiB of variables and secrets of an owner, or in force for an endpoint', async () => {
    const large = 'x'.repeat(60_000);
    const clear = async (owner: string) => {
      expectData(await put(`${owner}/variables`, {}));
      for (const { name } of expectData<{ name: string }[]>(await stack.api.get(`${owner}/secrets`)))
        expectData(await stack.api.delete(`${owner}/secrets/${name}`));
    };
    for (const owner of [domain, collection, endpoint]) await clear(owner);
    const full = /would have \d{6} bytes with their names; at most 262144 together/;

    for (let at = 0; at < 4; at++) expectData(await put(`${endpoint}/secrets/S${at}`, { value: large }));
    const before = await stack.api.get(`${endpoint}/secrets`);
    expectFailure(await put(`${endpoint}/secrets/S4`, { value: large }), 'invalid_input', full);
    expectFailure(await put(`${endpoint}/variables`, { PLAIN: large }), 'invalid_input', full);
    expect((await stack.api.get(`${endpoint}/secrets`)).body).to.deep.equal(before.body);
    // An existing one may be replaced, and a plain variable may become a secret.
    expectData(await put(`${endpoint}/secrets/S0`, { value: large }));
    expectData(await put(`${endpoint}/variables`, { PLAIN: 'x'.repeat(20_000) }));
    expectData(await put(`${endpoint}/secrets/PLAIN`, { value: 'x'.repeat(20_000) }));

    // Hidden ones take no room.
    expectData(await put(`${domain}/variables`, { S0: large, S1: large, S2: large }));
    const toEndpoint = /in force for the endpoint "\/read" .* would have \d{6} bytes/;
    expectFailure(await put(`${domain}/variables`, { OTHER: large }), 'invalid_input', toEndpoint);
    expectFailure(await put(`${collection}/secrets/OTHER`, { value: large }), 'invalid_input', toEndpoint);
    await reads('PLAIN', 'x'.repeat(20_000));
    for (const owner of [endpoint, collection, domain]) await clear(owner);
    await reads('S0', 'unset');
  });

  it('fails the start of a handler with a clear error when its stored variables are too large', async () => {
    const { api } = stack;
    const alone = `/api/endpoints/${await stack.deploy({ path: '/moved', code: READS })}`;
    const database = openDatabase(stack.databaseUrl, () => undefined);
    // As older releases stored them, which did not count.
    await database.knex.raw(
      `INSERT INTO variables (endpoint_id, name, value) SELECT ?, 'V' || at, repeat('x', 60000) FROM generate_series(1, 40) at`,
      [alone.split('/').pop() ?? ''],
    );
    await database.close();
    expectFailure(
      await api.post(`${alone}/invoke`, { method: 'GET' }),
      'handler_start_failed',
      /variables and secrets in force are too large .* \d{7} bytes .* delete some/,
    );
    expectFailure(await put(`${alone}/secrets/ONE_MORE`, { value: '1' }), 'invalid_input', /would have/);
    expectData(await put(`${alone}/variables`, {}));
    expect(
      expectData<{ body: string }>(await api.post(`${alone}/invoke`, { path: '/moved?name=V1' })),
    ).to.include({
      body: 'unset',
    });
  });

  it('passes variables of a domain also to endpoints of all hosts in its collections', async () => {
    const everywhere = await stack.deploy({
      ...{ path: '/everywhere', code: READS, domain: '*' },
      collection_id: collection.split('/').pop(),
    });
    const readHere = async (name: string) => (await call(`${stack.gatewayUrl}/everywhere?name=${name}`)).text;
    expectData(await put(`${domain}/variables`, { OF_DOMAIN: 'one' }));
    await eventually(async () => expect(await readHere('OF_DOMAIN')).to.equal('one'));
    expectData(await put(`${domain}/variables`, { OF_DOMAIN: 'two' }));
    await eventually(async () => expect(await readHere('OF_DOMAIN')).to.equal('two'));
    const environment = await stack.api.get(`/api/endpoints/${everywhere}/environment`);
    expect(expectData<{ name: string; scope: string }[]>(environment)[0]).to.include({
      ...{ name: 'OF_DOMAIN', scope: 'domain' },
    });
  });

  it('passes secrets again after a crash of the handler, and after a restart of the gateway', async () => {
    expectData(await put(`${endpoint}/secrets/STAYS`, { value: 'here' }));
    await reads('STAYS', 'here');
    const { pid } = (await must(stack.api.get(endpoint))) as { pid: number };
    process.kill(pid, 'SIGKILL');
    // A request may still be sent to the process that ends.
    await eventually(() => reads('STAYS', 'here'));
    await stack.processes.get('gateway')?.end();
    await stack.start('gateway');
    await reads('STAYS', 'here');
  });
});
