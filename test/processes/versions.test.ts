/** Versions and deployments over HTTP, with real processes: deploy, break, roll back, share, compare. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { tidyHistory } from '../../jobs/recover-deployments.js';
import { openDatabase } from '../../src/store/database.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure, TIMESTAMP, UUID } from '../support/expect.js';
import { numbered, slowToStart } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { outcomes, startLoad } from '../support/load.js';
import { createTestLog } from '../support/log.js';
import { type Stack, startStack } from '../support/processes.js';

interface Version {
  readonly version: number;
  readonly message: string | null;
  readonly deployed_percent: number;
  readonly actor: object | null;
}
interface Deployment {
  readonly kind: string;
  readonly outcome: string;
  readonly message: string | null;
  readonly error: string | null;
  readonly actor: object | null;
  readonly targets: readonly { readonly version: number; readonly percent: number }[];
}
interface Endpoint {
  readonly status: string;
  readonly code: string;
  readonly running_version: number | null;
  readonly latest_version: number | null;
  readonly needs_compile: boolean;
  readonly last_error: string | null;
  readonly deployment: {
    readonly id: string;
    readonly targets: readonly {
      readonly version: number;
      readonly state: string;
      readonly error: string | null;
    }[];
  } | null;
}

/** Who deploys without API_KEY. */
const ANYBODY = { kind: 'anonymous', address: '127.0.0.1' };
const DOES_NOT_COMPILE = 'fn handle() { this is not Rust }';
const DOES_NOT_START = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_req: Request) -> Response { Response::no_content() }
#[allow(unused)] fn unused() { handler_loop!(handle); }
fn main() { eprintln!("no configuration"); std::process::exit(7) }
`;
const BROKEN = numbered(99).replace('Response::text(200', 'Response::text(500');

describe('versions and deployments', function () {
  this.timeout(120_000);
  let stack: Stack;
  let count = 0;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.close());

  const create = async (code: string | null = null) => {
    const path = `/v${++count}`;
    const body = { name: path, path, method: 'POST', domain: '*', code };
    const { id } = expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201);
    const at = `/api/endpoints/${id}`;
    return {
      id,
      path,
      deploy: (request: object) => stack.api.post(`${at}/deploy`, request),
      rollBack: (request?: object) => stack.api.post(`${at}/rollback`, request),
      share: (targets: readonly object[], sticky?: unknown) =>
        stack.api.put(`${at}/deployment`, { targets, ...(sticky !== undefined && { sticky }) }),
      post: (step: string) => stack.api.post(`${at}/${step}`),
      put: (changes: object) => stack.api.put(at, changes),
      get: (suffix: string) => stack.api.get(`${at}/${suffix}`),
      endpoint: async () => expectData<Endpoint>(await stack.api.get(at)),
      versions: async () => expectData<Version[]>(await stack.api.get(`${at}/versions`)),
      deployments: async () => expectData<Deployment[]>(await stack.api.get(`${at}/deployments`)),
      answer: async () => (await call(`${stack.gatewayUrl}${path}`, { method: 'POST' })).text.trim(),
    };
  };

  it('deploys code in one call, and rolls back and forth between two versions', async () => {
    const one = await create();
    const first = expectData<Record<string, unknown>>(
      await one.deploy({ code: numbered(1), message: 'the first' }),
    );
    expect(first).to.include({ version: 1, status: 'running' });
    expect(first.deployment_id).to.match(UUID);
    expect(first.build_id).to.match(UUID);
    expect(first.pid).to.be.a('number');
    expect(await one.endpoint()).to.include({ dependencies: null });
    expect(await one.answer()).to.equal('1');

    expect(expectData(await one.deploy({ code: BROKEN, message: 'better' }))).to.include({ version: 2 });
    expect((await call(`${stack.gatewayUrl}${one.path}`, { method: 'POST' })).status).to.equal(500);
    expect(await one.endpoint()).to.include({
      ...{ status: 'running', code: BROKEN, running_version: 2, latest_version: 2 },
      needs_compile: false,
    });

    expect(expectData(await one.rollBack({ message: 'worse' }))).to.include({
      version: 1,
      status: 'running',
    });
    expect(await one.answer()).to.equal('1');
    expect(await one.endpoint()).to.include({ code: BROKEN, running_version: 1, latest_version: 2 });
    expect(expectData(await one.rollBack())).to.include({ version: 2 });
    expect(expectData(await one.rollBack())).to.include({ version: 1 });

    expect(
      (await one.versions()).map(({ version, message, deployed_percent }) => [
        version,
        message,
        deployed_percent,
      ]),
    ).to.deep.equal([
      [2, 'better', 0],
      [1, 'the first', 100],
    ]);
    expect(
      (await one.deployments()).map(({ kind, message, targets, outcome }) => [
        kind,
        message,
        targets.map(({ version }) => version),
        outcome,
      ]),
    ).to.deep.equal([
      ['rollback', null, [1], 'succeeded'],
      ['rollback', null, [2], 'succeeded'],
      ['rollback', 'worse', [1], 'succeeded'],
      ['deploy', 'better', [2], 'succeeded'],
      ['deploy', 'the first', [1], 'succeeded'],
    ]);
  });

  it('makes a version of each compiled source that differs from the newest, and starts the newest', async () => {
    const one = await create(numbered(1));
    expect(await one.versions()).to.deep.equal([]);
    expectFailure(await one.rollBack(), 'nothing_to_roll_back_to');
    expectData(await one.post('compile'));
    expectData(await one.post('compile'));
    expect((await one.versions()).map(({ version }) => version)).to.deep.equal([1]);
    expectData(await one.post('start'));
    expectData(await one.put({ code: numbered(2) }));
    expect((await one.versions()).length).to.equal(1);
    const { body } = await one.post('start');
    expect((body as { warnings: string[] }).warnings).to.deep.equal([
      'The code has changed since version 1, which runs now, was compiled: ' +
        'compile and start again, or deploy, to run the new code.',
    ]);
    expectData(await one.post('compile'));
    expect(await one.endpoint()).to.include({ status: 'compiled', running_version: 1, latest_version: 2 });
    expect(await one.answer()).to.equal('1');
    expectData(await one.post('start'));
    expect(await one.answer()).to.equal('2');
    expectData(await one.put({ code: numbered(1) }));
    expectData(await one.post('compile'));
    expect((await one.versions()).map(({ version }) => version)).to.deep.equal([3, 2, 1]);

    for (const { actor } of [...(await one.versions()), ...(await one.deployments())])
      expect(actor).to.deep.equal(ANYBODY);
    expectData(await one.post('stop'));
    expect((await one.deployments())[0]?.actor).to.deep.equal(ANYBODY);
    expect(await one.endpoint()).to.deep.include({ running_version: null, deployment: null });
    expect((await one.deployments()).map(({ kind }) => kind)).to.deep.equal(['stop', 'start', 'start']);
    // The version before the one that served last.
    expect(expectData(await one.rollBack())).to.include({ version: 1 });
    expect(await one.answer()).to.equal('1');
  });

  it('shows the code of a version, and the diff of two versions', async () => {
    const one = await create();
    for (const number of [1, 2]) expectData(await one.deploy({ code: numbered(number) }));
    const version = expectData<Record<string, unknown>>(await one.get('versions/1'));
    expect(version).to.include({ version: 1, code: numbered(1), deployed_percent: 0 });
    expect(version.actor).to.deep.equal(ANYBODY);
    expect(version.created_at).to.match(TIMESTAMP);
    const { from, to, diff } = expectData<{ from: number; to: number; diff: string }>(
      await one.get('versions/1/diff?to=2'),
    );
    expect([from, to]).to.deep.equal([1, 2]);
    expect(diff).to.include('--- handler.rs\tversion 1\n+++ handler.rs\tversion 2\n');
    expect(diff).to.include('\n-    Response::text(200, format!("1 {}"');
    expect(diff).to.include('\n+    Response::text(200, format!("2 {}"');
    const same = expectData(await one.get('versions/2/diff?to=2'));
    expect(same).to.deep.equal({ from: 2, to: 2, diff: '', crates: [] });
  });

  describe('deployments that fail', () => {
    const unchangedBy = async (
      code: string,
      expected: 'compile_failed' | 'handler_start_failed',
      reason: RegExp,
    ) => {
      const one = await create();
      expectData(await one.deploy({ code: numbered(1) }));
      const [endpoint, versions] = [await one.endpoint(), await one.versions()];
      expectFailure(await one.deploy({ code, message: 'bad' }), expected, reason);
      await eventually(async () => expect(await one.endpoint()).to.deep.equal(endpoint));
      expect(await one.versions()).to.deep.equal(versions);
      expect(await one.answer()).to.equal('1');
      return one;
    };

    it('leaves an endpoint as it was when the new code does not compile', async () => {
      const one = await unchangedBy(DOES_NOT_COMPILE, 'compile_failed', /expected one of/);
      expect((await one.deployments()).length).to.equal(1);
    });

    it('leaves an endpoint as it was when the new handler does not start', async () => {
      const one = await unchangedBy(DOES_NOT_START, 'handler_start_failed', /no configuration/);
      const [failed] = await one.deployments();
      expect(failed).to.deep.include({
        ...{ kind: 'deploy', outcome: 'failed', message: 'bad' },
        targets: [{ version: 2, percent: 100 }],
      });
      expect(failed?.error).to.match(/no configuration/);
      // Its number is not given again: logs have it.
      expect(expectData(await one.deploy({ code: numbered(2) }))).to.include({ version: 3 });
    });

    it('leaves a new endpoint as it was when its first deployment fails', async () => {
      const one = await create();
      expectFailure(await one.deploy({ code: DOES_NOT_START }), 'handler_start_failed');
      expect(await one.endpoint()).to.deep.include({
        ...{ status: 'created', code: null, latest_version: null, deployment: null },
      });
      expectFailure(await one.post('start'), 'endpoint_not_compiled');
    });
  });

  it('shares requests between two versions by percent, and rolls back to the one that served alone', async () => {
    const one = await create();
    expectData(await one.deploy({ code: numbered(1) }));
    expect(expectData(await one.deploy({ code: numbered(2), percent: 1 }))).to.include({ version: 2 });
    expect(await one.endpoint()).to.deep.include({ running_version: 1, code: numbered(2) });
    expect((await one.versions()).map(({ deployed_percent }) => deployed_percent)).to.deep.equal([1, 99]);
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: 8,
      pauseMs: 0,
      request: () => ({ path: one.path, method: 'POST', text: '1 ' }),
    });
    await eventually(() => expect(load.served() + load.failures().length).to.be.greaterThan(10_000), 60_000);
    const others = await load.stop();
    const total = load.served() + others.length;
    expect(
      others.every(({ what }) => /2 /.test(what)),
      JSON.stringify(outcomes(others)),
    ).to.equal(true);
    expect((others.length / total) * 10_000).to.be.within(60, 140);

    const shared = expectData<{ targets: object[] }>(
      await one.share([
        { version: 2, percent: 60 },
        { version: 1, percent: 40 },
      ]),
    );
    expect(shared).to.deep.include({
      targets: [
        { version: 2, percent: 60 },
        { version: 1, percent: 40 },
      ],
      status: 'running',
    });
    const answers = await Promise.all(Array.from({ length: 100 }, () => one.answer()));
    expect(answers.filter((answer) => answer === '2').length).to.be.within(50, 70);
    expect(expectData(await one.rollBack())).to.include({ version: 1 });
    expect(await one.answer()).to.equal('1');
    expectData(await one.share([{ version: 2, percent: 100 }]));
    expect((await one.deployments()).map(({ kind }) => kind)).to.deep.equal([
      'deploy',
      'rollback',
      'canary',
      'canary',
      'deploy',
    ]);
    expect(expectData(await one.rollBack())).to.include({ version: 1 });
  });

  it('shows which of two versions that serve fails, and why', async () => {
    const one = await create();
    expectData(await one.deploy({ code: numbered(1) }));
    const noStart = await one.deploy({ code: DOES_NOT_START, percent: 50 });
    expectFailure(noStart, 'handler_start_failed', /Version 2: .*no configuration/s);
    const dies = numbered(2).replace(
      'std::thread::sleep',
      'if req.header("X-Die").is_some() { std::process::exit(9) }\n    std::thread::sleep',
    );
    expectData(await one.deploy({ code: dies, percent: 50 }));
    const states = async () => (await one.endpoint()).deployment?.targets;
    const running = { percent: 50, state: 'running', error: null };
    expect(await states()).to.have.deep.members([
      { version: 1, ...running },
      { version: 3, ...running },
    ]);
    await eventually(async () => {
      await call(`${stack.gatewayUrl}${one.path}`, { method: 'POST', headers: { 'X-Die': '1' } });
      expect(await one.endpoint()).to.include({ status: 'error' });
    }, 60_000);
    const { last_error } = await one.endpoint();
    expect(last_error).to.match(/^Version 3: The handler crashed: .*exit code 9/);
    const byVersion = new Map((await states())?.map((target) => [target.version, target]));
    expect(byVersion.get(1)).to.include({ state: 'running', error: null });
    expect(byVersion.get(3)).to.include({ state: 'failed' });
    expect(byVersion.get(3)?.error).to.match(/^The handler crashed: .*exit code 9/);
    expect(expectData(await one.rollBack())).to.include({ version: 1 });
    expect(await states()).to.deep.equal([{ version: 1, percent: 100, state: 'running', error: null }]);
  });

  it('rolls back to a version that has served in a canary only', async () => {
    const one = await create();
    expectData(await one.deploy({ code: numbered(1) }));
    expectData(await one.deploy({ code: numbered(2), percent: 10 }));
    for (const version of [1, 2, 1, 2])
      expect(expectData(await one.rollBack()), `to ${version}`).to.include({ version });
    // A canary goes back to what served alone before it, whatever else had a share.
    expectData(await one.deploy({ code: numbered(3), percent: 10 }));
    expect(expectData(await one.rollBack())).to.include({ version: 2 });
    expect(expectData(await one.rollBack())).to.include({ version: 3 });
  });

  it('rolls back after several stops and starts, and skips versions that are deleted', async () => {
    const one = await create();
    for (const number of [1, 2, 3]) expectData(await one.deploy({ code: numbered(number) }));
    const database = openDatabase(stack.databaseUrl, () => undefined);
    try {
      const { log } = createTestLog();
      const kept = { VERSIONS_KEPT: 20, DEPLOYMENTS_KEPT: 2, JOBS_KEPT_HOURS: 1 };
      for (let round = 0; round < 3; round++) {
        expectData(await one.post('stop'));
        expectData(await one.post('start'));
        await tidyHistory(database, kept, log);
      }
      expect((await one.deployments()).length).to.equal(4);
      await database.knex('endpoint_versions').where({ endpoint_id: one.id, version: 2 }).delete();
      await tidyHistory(database, kept, log);
    } finally {
      await database.close();
    }
    expect(expectData(await one.rollBack())).to.include({ version: 1 });
    expect(expectData(await one.rollBack())).to.include({ version: 3 });
  });

  it('compiles an earlier version again for a rollback when its executable is gone', async () => {
    const one = await create();
    for (const number of [1, 2]) expectData(await one.deploy({ code: numbered(number) }));
    const builds = async () => expectData<object[]>(await stack.api.get('/api/builds')).length;
    const before = await builds();
    expectData(await one.rollBack());
    expectData(await one.rollBack());
    expect(await builds()).to.equal(before);
    // Also the copies that the gateway has.
    await rm(join(stack.dataDir, 'artifacts'), { recursive: true });
    expect(expectData(await one.rollBack())).to.include({ version: 1 });
    expect(await one.answer()).to.equal('1');
    expect(await builds()).to.equal(before + 1);
    expect(expectData<{ cached: boolean }[]>(await stack.api.get('/api/builds'))[0]).to.include({
      cached: false,
    });
  });

  for (const [by, headers] of [
    [{ header: 'X-User' }, (user: number) => ({ 'x-user': `user-${user}` })],
    [{ cookie: 'sid' }, (user: number) => ({ cookie: `a=b; sid=user-${user}` })],
  ] as const) {
    it(`keeps the version of a caller that a ${Object.keys(by)[0]} identifies, while the share holds`, async () => {
      const one = await create();
      for (const number of [1, 2]) expectData(await one.deploy({ code: numbered(number) }));
      const ask = async (user: number) => {
        const options = { method: 'POST', headers: headers(user) };
        return (await call(`${stack.gatewayUrl}${one.path}`, options)).text.trim();
      };
      const shared = async (percent: number) => {
        const targets = [
          { version: 1, percent: 100 - percent },
          { version: 2, percent },
        ];
        expectData(await one.share(targets, by));
        const versions: string[] = [];
        for (let user = 0; user < 60; user++) {
          const answers = new Set(await Promise.all(Array.from({ length: 4 }, () => ask(user))));
          expect(answers.size, `answers of user ${user}`).to.equal(1);
          versions.push([...answers].join());
        }
        return versions;
      };
      const half = await shared(50);
      expect(half.filter((version) => version === '2').length).to.be.within(15, 45);
      const most = await shared(90);
      expect(most.filter((version) => version === '2').length).to.be.within(45, 60);
      // Nobody goes back.
      for (const [user, version] of half.entries()) if (version === '2') expect(most[user]).to.equal('2');
      expect((await one.endpoint()).deployment).to.deep.include({ sticky: by });
      expectData(await one.deploy({ code: numbered(3), percent: 10 }));
      expect((await one.endpoint()).deployment).to.deep.include({ kind: 'canary', sticky: by });
    });
  }

  it('rolls back 50 times under load without a failed request', async () => {
    const one = await create();
    for (const number of [1, 2]) expectData(await one.deploy({ code: numbered(number) }));
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: 6,
      request: (client, number) => {
        const body = `${client}/${number}`;
        return { path: one.path, method: 'POST', body, text: new RegExp(`^[12] ${body}$`) };
      },
    });
    for (let round = 0; round < 50; round++) {
      expect(expectData(await one.rollBack())).to.include({ version: round % 2 === 0 ? 1 : 2 });
    }
    expect(outcomes(await load.stop())).to.deep.equal({});
    expect(load.served()).to.be.greaterThan(100);
  });

  describe('versions of deploys that were overtaken before they served', () => {
    /** Deploys version 1, and another one that is pending when this resolves. */
    const overtakable = async () => {
      const one = await create();
      expectData(await one.deploy({ code: numbered(1) }));
      const overtaken = one.deploy({ code: slowToStart(3) });
      await eventually(async () => expect((await one.endpoint()).latest_version).to.equal(2), 60_000);
      return { one, overtaken };
    };
    type One = Awaited<ReturnType<typeof create>>;
    const numbersOf = async (one: One) => (await one.versions()).map(({ version }) => version);

    it('removes the version of a deploy that a stop overtakes before it serves', async () => {
      const { one, overtaken } = await overtakable();
      expectData(await one.post('stop'));
      expectFailure(await overtaken, 'start_overtaken');
      expect(await numbersOf(one)).to.deep.equal([1]);
      expect(await one.endpoint()).to.include({ latest_version: 1, code: numbered(1), status: 'stopped' });
      expectData(await one.post('start'));
      expect(await one.answer()).to.equal('1');
    });

    it('removes the version of a deploy that a rollback overtakes before it serves', async () => {
      const { one, overtaken } = await overtakable();
      expectData(await one.rollBack({ version: 1 }));
      expectFailure(await overtaken, 'start_overtaken');
      expect(await numbersOf(one)).to.deep.equal([1]);
      expectData(await one.post('start'));
      expect(await one.answer()).to.equal('1');
    });

    it('removes the version of a deploy that another deploy overtakes before it serves', async () => {
      const { one, overtaken } = await overtakable();
      expect(expectData(await one.deploy({ code: numbered(2) }))).to.include({ version: 3 });
      expectFailure(await overtaken, 'start_overtaken');
      expect(await numbersOf(one)).to.deep.equal([3, 1]);
      expect(expectData(await one.rollBack())).to.include({ version: 1 });
    });

    it('keeps the version of a deploy when a start, or a deploy of the same source, takes it over', async () => {
      const { one, overtaken } = await overtakable();
      const [started, deployed] = await Promise.all([
        one.post('start'),
        one.deploy({ code: slowToStart(3) }),
      ]);
      expect(expectData(deployed)).to.include({ version: 2 });
      // Each of them waits for the same processes, and for its own deployment.
      for (const answer of [started, await overtaken])
        if (answer.status !== 200) expectFailure(answer, 'start_overtaken');
      expect(await numbersOf(one)).to.deep.equal([2, 1]);
      expect(await one.endpoint()).to.include({ running_version: 2, latest_version: 2 });
    });

    it('keeps the version of an overtaken deploy when a separate compile of its source made it, too', async () => {
      const { one, overtaken } = await overtakable();
      expectData(await one.put({ code: slowToStart(3) }));
      expectData(await one.post('compile'));
      expectData(await one.rollBack({ version: 1 }));
      expectFailure(await overtaken, 'start_overtaken');
      expect(await numbersOf(one)).to.deep.equal([2, 1]);
      expectData(await one.post('start'));
      expect(await one.answer()).to.equal('3');
    });
  });

  it('refuses deployments, shares and rollbacks that are not valid, and changes nothing', async () => {
    const one = await create();
    expectFailure(await one.deploy({}), 'endpoint_has_no_code');
    expectFailure(await one.deploy({ code: numbered(1), percent: 50 }), 'nothing_deployed');
    expect(await one.endpoint()).to.deep.include({ latest_version: null, code: null });
    expectData(await one.deploy({ code: numbered(1) }));
    expectFailure(await one.deploy({ percent: 50 }), 'nothing_deployed', /Version 1 serves already/);
    expectData(await one.deploy({ code: numbered(2) }));
    const before = [await one.endpoint(), await one.versions(), await one.deployments()];
    const version = (number: number, percent = 100) => ({ version: number, percent });
    for (const [answer, code, reason] of [
      [
        await one.rollBack({ version: 7 }),
        'not_found',
        /version 7 .* GET \/api\/endpoints\/.*\/versions lists/,
      ],
      [await one.rollBack({ version: 0 }), 'invalid_input', /version/],
      [await one.rollBack({ version: 'x' }), 'invalid_input', /version/],
      [await one.share([version(1, 50), version(2, 49)]), 'invalid_input', /add up to 100, not 99/],
      [await one.share([version(1, 50), version(1, 50)]), 'invalid_input', /must differ/],
      [await one.share([version(1, 30), version(2, 30), version(3, 40)]), 'invalid_input', /targets/],
      [await one.share([]), 'invalid_input', /targets/],
      [await one.share([version(1)], {}), 'invalid_input', /sticky/],
      [await one.share([version(1)], { header: 'a', cookie: 'b' }), 'invalid_input', /sticky/],
      [await one.share([version(1)], { header: 'a b' }), 'invalid_input', /sticky/],
      [await one.share([version(1)], { query: 'a' }), 'invalid_input', /sticky/],
      [await one.share([version(1)], 'x-user'), 'invalid_input', /sticky/],
      [await one.share([version(1, 0), version(2)]), 'invalid_input', /percent/],
      [await one.share([version(9)]), 'not_found', /version/],
      [await one.deploy({ percent: 0 }), 'invalid_input', /percent/],
      [await one.deploy({ percent: 101 }), 'invalid_input', /percent/],
      [await one.deploy({ dependencies: { 'no crate': '1' } }), 'invalid_dependency', /crate/],
      [await one.deploy({ message: 'x'.repeat(1_001) }), 'invalid_input', /message/],
      [await one.get('versions/3'), 'not_found', /version/],
      [await one.get('versions/x'), 'invalid_input', /version/],
      [await one.get('versions/1/diff'), 'invalid_input', /to/],
      [await one.get('versions/1/diff?to=4'), 'not_found', /version/],
    ] as const) {
      expectFailure(answer, code, reason);
    }
    expect([await one.endpoint(), await one.versions(), await one.deployments()]).to.deep.equal(before);
  });

  it('finishes a deployment whose web process was killed', async () => {
    const one = await create();
    expectData(await one.deploy({ code: numbered(1) }));
    const dying = one.deploy({ code: slowToStart(3) }).catch(() => 'cut');
    await eventually(async () => expect((await one.deployments())[0]?.outcome).to.equal('pending'), 60_000);
    await stack.processes.get('web')?.end('SIGKILL');
    await dying;
    await stack.start('web');
    await eventually(async () => expect((await one.deployments())[0]?.outcome).to.equal('succeeded'), 60_000);
    expect(await one.endpoint()).to.include({ running_version: 2, code: slowToStart(3), status: 'running' });
    expect(await one.answer()).to.equal('3');
  });
});
