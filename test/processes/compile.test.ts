/** From source to artifact, by real workers and the real compiler. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectFailure, NO_ID } from '../support/expect.js';
import { numbered, slowToCompile } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { OPTIONAL_CRATE, TWO_CRATES } from '../support/prepared-sets.js';
import { handlerCompilersOf, isRunning, processesWith } from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { startRedis, type TestRedis } from '../support/redis.js';

interface Compiled {
  readonly status: string;
  readonly message: string;
  readonly build_id: string;
  readonly cached: boolean;
  readonly warnings: number;
}

interface BuildView {
  readonly id: string;
  readonly state: string;
  readonly cached: boolean;
  readonly attempt: number;
  readonly endpoint_ids: readonly string[];
  readonly error: string | null;
  readonly error_code: string | null;
  readonly diagnostics: readonly Record<string, unknown>[];
  readonly artifact: string | null;
  readonly timings: Readonly<Record<string, number>>;
  readonly request_id: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
}

interface EndpointView {
  readonly status: string;
  readonly last_error: string | null;
  readonly needs_compile: boolean;
  readonly running: boolean;
  readonly pid: number | null;
}

/** In the life of this test it does not end. */
const ENDLESS = slowToCompile(1_000_000_000_000, 0);

const BROKEN = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    let number: u32 = "text";
    Response::ok(missing)
}
handler_loop!(handle);
`;

let stack: Stack;
let count = 0;

const build = async (id: string) => (await must(stack.api.get(`/api/builds/${id}`))) as BuildView;
const view = async (id: string) => (await must(stack.api.get(`/api/endpoints/${id}`))) as EndpointView;
const compile = (id: string, headers: Record<string, string> = {}) =>
  stack.api.post(`/api/endpoints/${id}/compile`, undefined, { headers });
const compiled = async (id: string) => (await must(compile(id))) as Compiled;
const create = async (code?: string, more: Record<string, unknown> = {}) => {
  const path = `/c${++count}`;
  const created = await must(
    stack.api.post('/api/endpoints', { name: path, path, method: 'GET', domain: '*', code, ...more }),
  );
  return { id: (created as { id: string }).id, url: `${stack.gatewayUrl}${path}` };
};
const finished = (id: string) =>
  eventually(async () => {
    const current = await build(id);
    expect(current.state).to.be.oneOf(['succeeded', 'failed']);
    return current;
  }, 40_000);

describe('compiling', () => {
  before(async () => {
    stack = await startStack();
  });
  after(() => stack.close());

  it('compiles a handler, and reuses its artifact for the same code', async () => {
    const { id } = await create(numbered(1));
    const first = await compiled(id);
    expect(first).to.include({ status: 'compiled', cached: false, warnings: 0 });
    expect(first.message).to.match(/success/i);
    expect(await view(id)).to.include({ status: 'compiled', needs_compile: false, last_error: null });

    const again = await compiled(id);
    expect(again).to.include({ status: 'compiled', cached: true });
    expect(again.build_id).not.to.equal(first.build_id);
    const [one, two] = [await build(first.build_id), await build(again.build_id)];
    expect(two).to.deep.include({ state: 'succeeded', cached: true, artifact: one.artifact, timings: {} });
    const other = await create(numbered(1));
    expect(await compiled(other.id)).to.include({ cached: true });
  });

  it('refuses source that does not compile, with the output of the compiler', async () => {
    const { id } = await create(BROKEN);
    const answer = await compile(id);
    expectFailure(answer, 'compile_failed', /^error\[E\d+\]: [\s\S]*--> handler\.rs:\d+:\d+\n[\s\S]*\n/);
    const { error, diagnostics } = answer.body as { error: string; diagnostics: Record<string, unknown>[] };
    expect(error).not.to.include('\u001b[').and.not.include('aborting due to');
    expect(
      diagnostics.map(({ code, level, line, column }) => ({ code, level, line, column })),
    ).to.have.deep.members([
      { code: 'E0308', level: 'error', line: 4, column: 23 },
      { code: 'E0425', level: 'error', line: 5, column: 18 },
    ]);
    const [mismatch] = diagnostics.filter(({ code }) => code === 'E0308');
    expect(mismatch).to.deep.include({ end_line: 4, end_column: 29 });
    expect(mismatch).to.have.property('labels').with.length(2);
    expect(await view(id)).to.include({ status: 'error', last_error: error });
  });

  it('runs one build for concurrent requests of the same code', async () => {
    const endpoints = await Promise.all([1, 2, 3].map(() => create(slowToCompile(200_000, 1))));
    const results = await Promise.all(endpoints.map(({ id }) => compiled(id)));
    const ids = new Set(results.map(({ build_id }) => build_id));
    expect(ids.size).to.equal(1);
    const shared = await build(results[0]?.build_id ?? '');
    expect(shared.endpoint_ids).to.have.members(endpoints.map(({ id }) => id));
    for (const { id } of endpoints) expect((await view(id)).status).to.equal('compiled');
  });

  it('compiles ten different handlers concurrently', async () => {
    const results = await Promise.all(
      Array.from({ length: 10 }, async (_, at) => compiled((await create(numbered(100 + at))).id)),
    );
    for (const result of results) expect(result).to.include({ status: 'compiled', cached: false });
    expect(new Set(results.map(({ build_id }) => build_id)).size).to.equal(10);
  });

  it('keeps the running process when the new source does not compile', async () => {
    const { id, url } = await create(numbered(1));
    await compiled(id);
    const { pid } = (await must(stack.api.post(`/api/endpoints/${id}/start`))) as { pid: number };
    await must(stack.api.put(`/api/endpoints/${id}`, { code: BROKEN }));
    expectFailure(await compile(id), 'compile_failed');
    expect(await view(id)).to.include({ status: 'error', running: true, pid, needs_compile: true });
    expect((await call(url)).text).to.equal('1 ');
    // What was compiled before is still what is started.
    expect(await must(stack.api.post(`/api/endpoints/${id}/start`))).to.deep.include({
      status: 'running',
      pid,
    });
    expect(isRunning(pid)).to.equal(true);
    expect((await call(url)).text).to.equal('1 ');
  });

  it('keeps the warnings of a build that succeeded', async () => {
    const { id } = await create(`fn unused() {}\n${numbered(1)}`);
    const result = await compiled(id);
    expect(result.warnings).to.equal(1);
    const { diagnostics } = await build(result.build_id);
    expect(diagnostics).to.have.length(1);
    expect(diagnostics[0]).to.include({ level: 'warning', code: 'dead_code', line: 1, column: 4 });
    const again = await compiled(id);
    expect(again).to.include({ cached: true, warnings: 1 });
    expect((await build(again.build_id)).diagnostics).to.deep.equal(diagnostics);
  });

  it('explains the error for a source without a handler macro', async () => {
    const { id } = await create(
      'use rust_edge_gateway_sdk::prelude::*;\nfn handle(_: Request) -> Response { Response::ok(1) }\n',
    );
    expectFailure(await compile(id), 'compile_failed', /no entry point[\s\S]*handler_loop!\(handle\)/);
    const forgotten = await create(
      'fn handle(_: Request) -> Response { Response::ok(1) }\nhandler_loop!(handle);\n',
    );
    const answer = await compile(forgotten.id);
    expectFailure(answer, 'compile_failed', /cannot find macro `handler_loop`/);
    expect((answer.body as { error: string }).error).not.to.match(/no entry point/);
  });

  it('names the handler macro that fits the function when another one is used', async () => {
    const plain = 'fn handle(_: Request) -> Response { Response::new(204) }';
    const result = 'fn handle(_: Request) -> Result<Response, HandlerError> { Ok(Response::new(204)) }';
    for (const [macro, handle, fitting] of [
      ['handler_loop', result, '`handler_loop_result!` for a `Result`'],
      ['handler_loop', `async ${plain}`, '`handler_loop_async!` for an `async fn`'],
      ['handler_loop_result', plain, '`handler_loop!` for a `Response`'],
      ['handler_loop_result', `async ${result}`, '`handler_loop_async_result!` for an `async fn`'],
      ['handler_loop_async', plain, '`handler_loop!` for a `Response`'],
      ['handler_loop_async_result', result, '`handler_loop_result!` for a `Result`'],
    ] as const) {
      const { id } = await create(`use rust_edge_gateway_sdk::prelude::*;\n${handle}\n${macro}!(handle);\n`);
      const answer = await compile(id);
      expectFailure(answer, 'compile_failed');
      const { diagnostics } = answer.body as { diagnostics: { message: string; line: number }[] };
      expect(diagnostics, `${macro}!: ${handle}`).to.have.length(1);
      expect(diagnostics[0]?.message).to.include(fitting);
      expect(diagnostics[0]?.line).to.equal(3);
    }
  }).timeout(180_000);

  it('rejects a program that serves no requests, but not a hand-written loop', async () => {
    const { id } = await create('fn main() {}\n');
    expectFailure(await compile(id), 'compile_failed', /no entry point[\s\S]*handler_loop_async_result!/);
    expect((await view(id)).status).to.equal('error');
    const byHand = await create(
      'use rust_edge_gateway_sdk::prelude::*;\nfn main() {\n    while read_request().is_ok() {\n' +
        '        let _ = send_response(Response::text(200, "by hand"));\n    }\n}\n',
    );
    await compiled(byHand.id);
    await must(stack.api.post(`/api/endpoints/${byHand.id}/start`));
    expect((await call(byHand.url)).text).to.equal('by hand');
  });

  it('names no folder of this machine in errors of the compiler and linker', async () => {
    const { id } = await create(
      'use rust_edge_gateway_sdk::prelude::*;\nstruct Opaque;\n' +
        'fn handle(_: Request) -> Response { let _: u8 = serde_json::from_str(1, 2); Response::ok(Opaque) }\nhandler_loop!(handle);\n',
    );
    const types = (await compile(id)).body as { error: string };
    expect(types.error).to.match(/ rust-edge-gateway-sdk\/core\/src\/response\.rs:\d+/);
    expect(types.error).to.match(/ serde_json-[\d.]+\/src\/de\.rs:\d+/);
    const unlinked = await create(
      'use rust_edge_gateway_sdk::prelude::*;\nextern "C" { fn nowhere(); }\n' +
        'fn handle(_: Request) -> Response { unsafe { nowhere() }; Response::ok(1) }\nhandler_loop!(handle);\n',
    );
    const linker = (await compile(unlinked.id)).body as { error: string };
    expect(linker.error).to.match(/nowhere/);
    const ours = [stack.dataDir, process.cwd(), homedir(), '/.cargo/', '/toolchains/'];
    for (const text of [JSON.stringify(types), JSON.stringify(linker)])
      for (const folder of ours) expect(text).not.to.include(folder);
  });

  it('refuses to compile an endpoint that has no code or does not exist, and to show an unknown build', async () => {
    for (const code of [undefined, '', ' \n']) {
      const { id } = await create(code);
      expectFailure(await compile(id), 'endpoint_has_no_code');
      expect((await view(id)).status).to.equal('created');
    }
    expectFailure(await compile('00000000-0000-4000-8000-000000000000'), 'not_found');
    expectFailure(await stack.api.get('/api/builds/00000000-0000-4000-8000-000000000000'), 'not_found');
  });

  it('answers a compile at once with Prefer: respond-async, and shows how its build ends', async () => {
    const { id } = await create(numbered(201));
    const answer = await compile(id, { prefer: 'respond-async', 'x-request-id': 'the-request' });
    expect(answer.status).to.equal(202);
    const { build_id, status } = (answer.body as { data: { build_id: string; status: string } }).data;
    expect(status).to.equal('queued');
    expect(answer.headers).to.include({
      location: `/api/builds/${build_id}`,
      'preference-applied': 'respond-async',
    });
    const done = await finished(build_id);
    const { name } = (await view(id)) as unknown as { name: string };
    for (const shown of [done, ((await must(stack.api.get('/api/builds?limit=1'))) as object[])[0]])
      expect(shown).to.deep.include({ id: build_id, endpoints: [{ id, name }] });
    expect(done).to.deep.include({
      state: 'succeeded',
      attempt: 1,
      request_id: 'the-request',
      endpoint_ids: [id],
    });
    expect(done.artifact).to.match(/^[0-9a-f]{64}$/);
    expect(done.timings).to.have.all.keys('dependencies_ms', 'compile_ms', 'store_ms');
    expect(done.started_at).to.be.a('string');
    expect(done.finished_at).to.be.a('string');
    expect((await view(id)).status).to.equal('compiled');

    const broken = await create(BROKEN.replace('missing', 'absent'));
    const { body } = await compile(broken.id, { prefer: 'respond-async' });
    const failed = await finished((body as { data: { build_id: string } }).data.build_id);
    expect(failed).to.include({ state: 'failed', error_code: 'compile_failed', artifact: null });
    expect(failed.error).to.match(/absent/);
    expect(failed.diagnostics).to.have.length(2);
  });

  it('compiles a handler of each macro, which answers requests', async () => {
    const answer = 'Response::text(200, req.path_param("name").cloned().unwrap_or_default())';
    const sleep = 'tokio::time::sleep(std::time::Duration::from_millis(5)).await;';
    const functions: Record<string, string> = {
      handler_loop: `fn handle(req: Request) -> Response { ${answer} }`,
      handler_loop_result: `fn handle(req: Request) -> Result<Response, HandlerError> { Ok(${answer}) }`,
      handler_loop_async: `async fn handle(req: Request) -> Response { ${sleep} ${answer} }`,
      handler_loop_async_result: `async fn handle(req: Request) -> Result<Response, HandlerError> { ${sleep} Ok(${answer}) }`,
    };
    functions['handler_loop_result_async'] = functions['handler_loop_async_result'] ?? '';
    for (const [macro, handle] of Object.entries(functions)) {
      const path = `/${macro}/{name}`;
      const code = `use rust_edge_gateway_sdk::prelude::*;\n${handle}\n${macro}!(handle);\n`;
      const { id } = await create(code, { path });
      await compiled(id);
      await must(stack.api.post(`/api/endpoints/${id}/start`));
      expect((await call(`${stack.gatewayUrl}/${macro}/of`)).text, macro).to.equal('of');
    }
  }).timeout(180_000);

  it('passes no secrets to the compiler', async () => {
    for (const name of ['DATABASE_URL', 'API_KEY', 'SECRET_KEY']) {
      const { id } = await create(numbered(1).replace('"1 {}"', `concat!(env!("${name}"), "{}")`));
      expectFailure(
        await compile(id),
        'compile_failed',
        new RegExp(`environment variable \`${name}\` not defined`),
      );
    }
  });

  describe('compiling with dependencies', () => {
    const dependencies = TWO_CRATES;
    const source = (number: number) => `
use rust_edge_gateway_sdk::prelude::*;
#[derive(Serialize)]
struct Found { day: chrono::NaiveDate, number: u32 }
fn handle(req: Request) -> Result<Response, HandlerError> {
    let text = req.query_param("text").cloned().unwrap_or_default();
    let day = regex::Regex::new(r"\\d{4}-\\d\\d-\\d\\d").unwrap().find(&text).ok_or(HandlerError::NotFound)?;
    let day = day.as_str().parse().map_err(|_| HandlerError::BadRequest("no day".into()))?;
    Ok(Response::ok(Found { day, number: ${number} }))
}
handler_loop_result!(handle);
`;
    const setsDir = () => join(stack.dataDir, 'build', 'sets');
    /** The files that preparing has left of each set with these crates: preparing it again makes a new one. */
    const prepared = async () => {
      const files: Record<string, number> = {};
      for (const name of await readdir(setsDir())) {
        const manifest = await readFile(join(setsDir(), name, 'project', 'Cargo.toml'), 'utf8').catch(
          () => '',
        );
        if (!/^regex = /m.test(manifest)) continue;
        const file = await stat(join(setsDir(), name, 'rustc-args.json')).catch(() => undefined);
        if (file) files[name] = file.ino;
      }
      return files;
    };

    it('links the crates of a handler, and reuses the prepared dependency set the next time', async () => {
      const { id, url } = await create(source(1), { dependencies });
      await compiled(id);
      await must(stack.api.post(`/api/endpoints/${id}/start`));
      const answer = await call(`${url}?text=it%20was%202026-02-28%20then`);
      expect(JSON.parse(answer.text)).to.deep.equal({ day: '2026-02-28', number: 1 });
      expect((await call(`${url}?text=2026-02-31`)).status).to.equal(400);
      expect((await call(`${url}?text=never`)).status).to.equal(404);

      const files = await prepared();
      expect(files).not.to.deep.equal({});
      const second = await create(source(2), { dependencies });
      expect(await compiled(second.id)).to.include({ cached: false });
      expect(await prepared()).to.deep.include(files);
    }).timeout(300_000);

    it('accepts an optional dependency that is not built', async () => {
      const { id } = await create(numbered(3), { dependencies: OPTIONAL_CRATE });
      expect(await compiled(id)).to.include({ status: 'compiled' });
    }).timeout(300_000);

    it('rejects an unknown crate with the output of cargo', async () => {
      const { id } = await create(numbered(4), { dependencies: { 'edge-gateway-has-no-such-crate': '1' } });
      expectFailure(await compile(id), 'compile_failed', /edge-gateway-has-no-such-crate/);
      const { last_error } = await view(id);
      expect(last_error).to.match(/no matching package|not found|could not find/);
      expect(last_error).not.to.include(stack.dataDir);
    }).timeout(120_000);
  });

  describe('a worker', () => {
    const workerPid = () => stack.processes.get('worker')?.pid ?? 0;

    it('finishes the builds of a worker that gets SIGTERM', async () => {
      // Not slower: a worker that is to stop gives its builds 10 s.
      const { id } = await create(slowToCompile(100_000, 2));
      const answer = compiled(id);
      await eventually(() => expect(handlerCompilersOf(workerPid())).not.to.deep.equal([]));
      const ended = await stack.processes.get('worker')?.end();
      expect(ended).to.deep.equal({ code: 0, signal: null });
      expect((await build((await answer).build_id)).attempt).to.equal(1);
      await stack.start('worker');
    });

    it('ends a cancelled build, and leaves the status of its endpoint as it was', async () => {
      const { id } = await create(ENDLESS);
      const same = await create(ENDLESS);
      const accepted = await must(compile(id, { prefer: 'respond-async' }));
      const { build_id } = accepted as { build_id: string };
      const answers = [compile(id), compile(same.id)];
      await eventually(async () => expect((await build(build_id)).endpoint_ids).to.have.length(2));
      await eventually(() => expect(handlerCompilersOf(workerPid())).to.have.length(1));
      const { body } = await stack.api.post(`/api/builds/${build_id}/cancel`);
      expect(body).to.have.nested.include({ 'data.state': 'failed', 'data.error_code': 'build_cancelled' });
      for (const answer of answers) expectFailure(await answer, 'build_cancelled', /Compile again/);
      await eventually(() => expect(handlerCompilersOf(workerPid())).to.deep.equal([]));
      expect(await view(id)).to.include({ status: 'created', last_error: null });
      const cancel = (which: string) => stack.api.post(`/api/builds/${which}/cancel`);
      expectFailure(await cancel(build_id), 'build_ended', /has ended \(failed\)/);
      expectFailure(await cancel(NO_ID), 'not_found');
      await must(stack.api.put(`/api/endpoints/${id}`, { code: numbered(302) }));
      expect(await compiled(id)).to.include({ status: 'compiled' });
    });

    it('does not begin a build that is cancelled while it is queued', async () => {
      await stack.processes.get('worker')?.end();
      const { id } = await create(ENDLESS);
      const accepted = await must(compile(id, { prefer: 'respond-async' }));
      const { build_id } = accepted as { build_id: string };
      await must(stack.api.post(`/api/builds/${build_id}/cancel`));
      await stack.start('worker');
      expect(await compiled((await create(numbered(303))).id)).to.include({ status: 'compiled' });
      expect(await build(build_id)).to.deep.include({ state: 'failed', started_at: null });
    });

    it('kills a build that exceeds the time limit, with all its processes', async () => {
      await stack.processes.get('worker')?.end();
      await stack.start('worker', { COMPILE_TIMEOUT_MS: '10000' });
      const { id } = await create(ENDLESS);
      const answer = await compile(id);
      expectFailure(answer, 'compile_timeout', /did not end within 10 s.*COMPILE_TIMEOUT_MS/);
      expect(handlerCompilersOf(workerPid())).to.deep.equal([]);
      expect(processesWith(`.${workerPid()}.`)).to.deep.equal([]);
      expect((await view(id)).status).to.equal('error');
      // A real build has the time that it usually has.
      await stack.processes.get('worker')?.end();
      await stack.start('worker');
      const next = await create(numbered(301));
      expect(await compiled(next.id)).to.include({ status: 'compiled' });
    });
  });
});

describe('compiling with the queue on Redis', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startRedis();
    stack = await startStack({ env: { REDIS_URL: redis.url }, processes: ['web', 'worker'] });
  });
  after(async () => {
    await stack.close();
    await redis.remove();
  });

  it('does not lose an accepted build when Redis forgets it', async () => {
    await stack.processes.get('worker')?.end();
    const { id } = await create(numbered(401));
    const { body } = await compile(id, { prefer: 'respond-async' });
    const { build_id } = (body as { data: { build_id: string } }).data;
    await redis.stop();
    await redis.start();
    await stack.start('worker');
    expect(await finished(build_id)).to.include({ state: 'succeeded', attempt: 2 });
  });

  it('answers a compile with 503 while Redis is down, and compiles when it is back', async () => {
    const { id } = await create(numbered(402));
    await redis.stop();
    expectFailure(await compile(id), 'queue_unavailable');
    expect((await stack.api.get('/api/health')).status).to.equal(200);
    await redis.start();
    await eventually(async () => expect(await compiled(id)).to.include({ status: 'compiled' }));
    expect(await view(id)).to.include({ status: 'compiled', last_error: null });
  });

  it('starts web while Redis is down, and compiles when it is back', async () => {
    await redis.stop();
    await stack.processes.get('web')?.end();
    await stack.start('web');
    const { id } = await create(numbered(403));
    expectFailure(await compile(id), 'queue_unavailable');
    await redis.start();
    await eventually(async () => expect(await compiled(id)).to.include({ status: 'compiled' }));
  });
});
