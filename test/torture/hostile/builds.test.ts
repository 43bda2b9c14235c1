/**
 * Sources that attack the machine that compiles them. The sandbox is required, so that nothing here passes without one;
 * hostile crates have a file of their own.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectFailure } from '../../support/expect.js';
import { multipart } from '../../support/form.js';
import { numbered, slowToCompile } from '../../support/handler-sources.js';
import { describeAttacks, SOURCES } from '../../support/hostile/attacks.js';
import { SANDBOX_SETTING } from '../../support/hostile/neighbourhood.js';
import { processesWith } from '../../support/process-state.js';
import { BUILD_CACHE, must, type Stack, scratchOf, startStack } from '../../support/processes.js';
import { zipOf } from '../../support/zip.js';

const HANDLER = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response { Response::text(200, "served") }
handler_loop!(handle);
`;
/** Content of files that must not be read. */
const SECRET = 'a-secret-of-this-machine';

describeAttacks('hostile sources', SOURCES, (level, it) => {
  let stack: Stack;
  let count = 0;

  before(async () => {
    stack = await startStack({
      env: {
        SANDBOX: SANDBOX_SETTING[level],
        SECRET_KEY: '',
        API_KEY: '',
        CARGO_REGISTRY_TOKEN: SECRET,
        COMPILE_TIMEOUT_MS: '8000',
        COMPILE_MEMORY_MB: '1536',
      },
      processes: ['web', 'worker'],
    });
    // The node of the worker is there when it is ready.
    const { sandbox } = (await must(stack.api.get('/api/health'))) as { sandbox: { worker: string } };
    expect(sandbox.worker).to.equal(level);
    await writeFile(join(stack.dataDir, 'secret'), SECRET);
    expect(existsSync(join(stack.dataDir, 'secret.key'))).to.equal(true);
  });
  after(() => stack.close());

  const create = async (code: string) => {
    const path = `/h${++count}`;
    const endpoint = { name: path, path, method: 'GET', domain: '*', code };
    return ((await must(stack.api.post('/api/endpoints', endpoint))) as { id: string }).id;
  };
  const compile = async (code: string) => stack.api.post(`/api/endpoints/${await create(code)}/compile`);
  const workerPid = () => stack.processes.get('worker')?.pid ?? 0;
  const scratch = () => scratchOf(workerPid());

  /** The compiler refuses it, says nothing of what it should not, and the next handler compiles at once. */
  const refused = async (code: string, message: RegExp) => {
    const answer = await compile(code);
    expectFailure(answer, 'compile_failed', message);
    const text = JSON.stringify(answer.body);
    // But what it said itself.
    for (const secret of [SECRET, 'root:x', stack.dataDir, BUILD_CACHE, process.cwd()])
      if (!code.includes(secret)) expect(text).not.to.include(secret);
  };
  const expectNothingLeft = async () => {
    await eventually(async () => expect(await readdir(await scratch())).to.deep.equal([]));
    expect(processesWith(`.${workerPid()}.`)).to.deep.equal([]);
  };
  afterEach(async () => {
    await must(compile(numbered(10_000 + ++count)));
    await expectNothingLeft();
  });

  it('a hostile source reads no file of the machine', async (reason) => {
    const [set = ''] = await readdir(join(BUILD_CACHE, 'sets'));
    const paths = [
      '/etc/passwd',
      '/etc/hostname',
      '/root/.cargo/credentials.toml',
      '/cargo/credentials.toml',
      '../../../../../../../../etc/passwd',
      '../../../secret',
      join(stack.dataDir, 'secret'),
      join(stack.dataDir, 'secret.key'),
      join(stack.dataDir, 'build', 'sets', set, 'rustc-args.json'),
      join(BUILD_CACHE, 'sets', set, 'rustc-args.json'),
      `/proc/${workerPid()}/environ`,
      '/proc/1/root/etc/passwd',
      '/proc/self/cwd/../etc/passwd',
    ];
    const macros = paths.flatMap((path, at) => [
      `const TEXT_${at}: &str = include_str!(${JSON.stringify(path)});`,
      `const BYTES_${at}: &[u8] = include_bytes!(${JSON.stringify(path)});`,
    ]);
    const answer = await compile(`${macros.join('\n')}\n${HANDLER}`);
    expectFailure(answer, 'compile_failed', reason);
    const { diagnostics } = answer.body as { diagnostics: { line: number; message: string }[] };
    // Each line is an error of its own: none of the files was there.
    const lines = new Set(diagnostics.filter(({ message }) => reason.test(message)).map(({ line }) => line));
    expect([...lines].sort((a, b) => a - b)).to.deep.equal(macros.map((_, at) => at + 1));
    expect(JSON.stringify(answer.body)).not.to.include(SECRET).and.not.to.include('root:x');
  });

  it('a hostile source reads no source of a handler that is compiled at the same time', async (reason) => {
    const other = await create(slowToCompile(4_000_000, 7));
    const compiling = stack.api.post(`/api/endpoints/${other}/compile`);
    const folder = await eventually(async () => {
      const [name] = await readdir(await scratch());
      expect(name).to.be.a('string');
      return join(await scratch(), name ?? '');
    });
    const path = join(folder, 'work', 'handler.rs');
    await refused(`const X: &str = include_str!(${JSON.stringify(path)});${HANDLER}`, reason);
    await compiling;
  });

  it('a hostile source reads no environment but its own, which has no secrets', async () => {
    // Without namespaces, others cannot even be named.
    const others = level === 'namespaces' ? ['1', 'self/task/1'] : [];
    const environ = ['self', ...others].map((process) => `include_bytes!("/proc/${process}/environ")`);
    const names = [
      'DATABASE_URL',
      'API_KEY',
      'SECRET_KEY',
      'CARGO_REGISTRY_TOKEN',
      'CARGO_HOME',
      'SSL_CERT_FILE',
    ];
    const options = names.map((name) => `option_env!("${name}").is_some()`);
    const answer = await compile(`
use rust_edge_gateway_sdk::prelude::*;
static ENVIRONMENTS: &[&[u8]] = &[${environ.join(', ')}];
const _: () = assert!(!(${options.join(' || ')}));
fn handle(_: Request) -> Response { Response::ok(ENVIRONMENTS.concat()) }
handler_loop!(handle);
`);
    const { build_id } = (await must(Promise.resolve(answer))) as { build_id: string };
    const { artifact } = (await must(stack.api.get(`/api/builds/${build_id}`))) as { artifact: string };
    const executable = await readFile(
      join(stack.dataDir, 'artifacts', artifact.slice(0, 2), artifact),
      'latin1',
    );
    // Only what was set for the compiler, and marks it as one of this worker's.
    const found = new Set(executable.match(/(?<=\0)[A-Z_]{3,}=[^\0]*(?=\0)/g));
    const variables = new Set([...found].map((variable) => variable.split('=')[0]));
    expect([...variables]).to.include.members(['PATH', 'TMPDIR']);
    expect(
      [...variables].filter((name) => !/^(HOME|PATH|TMPDIR|PWD|OLDPWD|LD_LIBRARY_PATH)$/.test(`${name}`)),
    ).to.deep.equal([]);
    const folders = level === 'namespaces' ? [stack.dataDir, BUILD_CACHE] : [];
    for (const secret of [SECRET, 'postgres://', ...folders]) expect(executable).not.to.include(secret);
  });

  it('ends a compile whose source makes the compiler wait for its own pipe', async (reason) => {
    const reading = `const X: &str = include_str!("/proc/self/fd/3");${HANDLER}`;
    await refused(reading, reason);
  }).timeout(60_000);

  it('a hostile source includes no file by attributes, assembly or links', async () => {
    const ways: Record<string, RegExp> = {
      '#[path = "/etc/passwd"] mod passwd;': /couldn't read|file not found/,
      'include!("/etc/passwd");': /couldn't read/,
      'std::arch::global_asm!(".incbin \\"/etc/passwd\\"");': /Could not find incbin file/i,
      'std::arch::global_asm!(".include \\"/etc/passwd\\"");': /Could not find include file/i,
      '#[link(name = "/etc/passwd", kind = "static")] extern "C" {}': /link|native static library/,
      '#[link(name = "@/etc/passwd")] extern "C" {}': /link/,
      '#[link(name = "x -Wl,--just-symbols=/etc/passwd")] extern "C" {}': /link/,
      '#[doc = include_str!("/etc/passwd")] pub struct Documented;': /couldn't read/,
      'const X: &str = env!("DATABASE_URL");': /not defined at compile time/,
    };
    for (const [way, message] of Object.entries(ways)) await refused(`${way}${HANDLER}`, message);
    // What is not for a handler to say is ignored or refused, and leaves no other file.
    for (const attribute of [
      '#![crate_type = "dylib"]',
      '#![crate_name = "../../escaped"]',
      '#![feature(link_args)]',
    ])
      await compile(`${attribute}${HANDLER}`);
    expect(existsSync(join(BUILD_CACHE, 'escaped'))).to.equal(false);
  }).timeout(120_000);

  it('ends a compile at a limit when its source recurses, or computes, without end', async () => {
    const endless: Record<string, string> = {
      'a macro':
        '#![recursion_limit = "4294967295"]\nmacro_rules! m { ($($t:tt)*) => { m!($($t)* $($t)* x) } }\nm!(x);',
      'a macro that grows slowly':
        '#![recursion_limit = "4294967295"]\nmacro_rules! m { ($($t:tt)*) => { m!(x $($t)*) } }\nm!(x);',
      'a constant': '#![allow(long_running_const_eval)]\nconst X: u8 = loop {};',
      'a type': [
        '#![recursion_limit = "4294967295"]',
        'trait Grows { fn grow(n: u32) -> u32; }',
        'impl<T: Pairs> Grows for T { fn grow(n: u32) -> u32 { if n == 0 { 0 } else { <(T, T) as Grows>::grow(n - 1) } } }',
        'trait Pairs {} impl Pairs for u8 {} impl<A: Pairs, B: Pairs> Pairs for (A, B) {}',
        '#[no_mangle] pub fn started(n: u32) -> u32 { u8::grow(n) }',
      ].join('\n'),
      'an array in memory':
        'const fn fill() -> [u8; 1 << 33] { [7; 1 << 33] }\nstatic A: [u8; 1 << 33] = fill();\n#[no_mangle] pub fn first(at: usize) -> u8 { A[at] }',
    };
    for (const [what, code] of Object.entries(endless)) {
      const answer = await compile(`${code}${HANDLER}`);
      const { ok, code: error, error: text } = answer.body as { ok: boolean; code: string; error: string };
      expect(ok, what).to.equal(false);
      expect(error, `${what}: ${text}`).to.be.oneOf(['compile_failed', 'compile_timeout']);
      expect(text, what).to.match(
        /recursion limit|overflow|too big|limit of memory|COMPILE_(TIMEOUT|MEMORY|TOTAL_MEMORY|CPU)|memory allocation|evaluation of|ended by SIG/,
      );
    }
  }).timeout(180_000);

  it('refuses a source of 10 MB, and compiles one of 100,000 functions or ends at its limit', async () => {
    const functions = Array.from({ length: 100_000 }, (_, at) => `fn f${at}(x: u64) -> u64 { x + ${at} }`);
    const many = await compile(`${functions.join('\n')}${HANDLER}`);
    if (many.status !== 200) expectFailure(many, 'compile_timeout', /COMPILE_TIMEOUT_MS/);
    const large = `//${'x'.repeat(10 * 1024 * 1024)}\n${HANDLER}`;
    expectFailure(
      await stack.api.post('/api/endpoints', {
        name: 'l',
        path: '/l',
        method: 'GET',
        domain: '*',
        code: large,
      }),
      'body_too_large',
      /API_BODY_LIMIT_BYTES|4194304|MiB/,
    );
  }).timeout(120_000);

  it('refuses a bundle with a source of 10 MB', async (reason) => {
    const functions = Array.from(
      { length: 250_000 },
      (_, at) => `pub fn f${at}(x: u64) -> u64 { x ^ ${at} }\n`,
    );
    const code = `${functions.join('')}${HANDLER}`;
    expect(code.length).to.be.greaterThan(10 * 1024 * 1024);
    const path = `large-${process.pid}`;
    const operation = { operationId: 'large', responses: { 200: { description: 'ok' } } };
    const spec = {
      openapi: '3.0.3',
      info: { title: 'Large', version: '1' },
      paths: { [`/${path}`]: { get: operation } },
    };
    const zip = zipOf({ 'openapi.json': JSON.stringify(spec), 'handlers/large.rs': code });
    const form = multipart([{ name: 'bundle', filename: 'api.zip', content: zip }]);
    const answer = await stack.api.post('/api/import/bundle?domain=*&compile=true', form.body, {
      headers: form.headers,
    });
    expectFailure(answer, 'body_too_large', reason);
  }).timeout(120_000);

  it('refuses, with a storable message, a source that makes the compiler print invalid text', async () => {
    await refused(`compile_error!("a NUL \\0 and \\u{202e} more");${HANDLER}`, /a NUL/);
    const long = 'x'.repeat(200_000);
    const answer = await compile(`${`compile_error!("${long}");\n`.repeat(15)}${HANDLER}`);
    expectFailure(answer, 'compile_failed', /shortened/);
    expect(JSON.stringify(answer.body).length).to.be.below(4_000_000);
  });
});
