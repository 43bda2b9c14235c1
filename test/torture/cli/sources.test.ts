/** Eight handlers that share files, from a folder: `edge deploy`, `edge dev`, `edge apply` and `edge export`. */
import { cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { type EdgeOptions, edge, startEdge } from '../../support/edge.js';
import { eventually } from '../../support/eventually.js';
import { type Stack, startStack } from '../../support/processes.js';
import { answerOf, BESIDE, helloOf } from '../../support/source-folders.js';
import { type TempDir, tempDir } from '../../support/temp.js';
import { zipOf } from '../../support/zip.js';

const NAMES = Array.from({ length: 8 }, (_, number) => `e${number}`);
const HOST = 'files.test';
const DEV_HOST = 'files-dev.localhost';
/** A handler without other files. */
const ONE_FILE = `use rust_edge_gateway_sdk::prelude::*;
fn handle(_req: Request) -> Response {
    Response::text(200, "one")
}
handler_loop!(handle);
`;

describe('sources of several files from a folder', function () {
  this.timeout(600_000);
  let stack: Stack;
  let folder: TempDir;
  let env: Record<string, string>;
  const project = () => join(folder.path, 'project');

  const write = async (path: string, content: string | Buffer, root = project()) => {
    const file = join(root, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
  };
  const run = (args: string[], options: EdgeOptions = {}) => edge(args, { cwd: project(), env, ...options });
  const succeeds = async (args: string[], options?: EdgeOptions) => {
    const result = await run(args, options);
    expect(result.code, `edge ${args.join(' ')}: ${result.stderr}`).to.equal(0);
    return result;
  };
  const ask = async (name: string, host = HOST) =>
    String((await stack.gateway.get(`/${name}`, { headers: { host } })).body).trim();
  const edgeFile = (more: Readonly<Record<string, object>> = {}, host = HOST, stack = 'files') =>
    JSON.stringify({
      stack,
      domains: [{ host }],
      endpoints: NAMES.map((name) => {
        const handler = `src/${name}.rs`;
        return { host, method: 'GET', route: `/${name}`, handler, ...more[name] };
      }),
    });

  before(async () => {
    stack = await startStack();
    folder = await tempDir('sources');
    env = { XDG_CONFIG_HOME: join(folder.path, 'config'), EDGE_URL: stack.apiUrl };
    await write('edge.yaml', edgeFile());
    for (const [path, content] of Object.entries(BESIDE))
      await write(path, typeof content === 'string' ? content : Buffer.from(content.base64, 'base64'));
    for (const name of NAMES) await write(`src/${name}.rs`, helloOf(name));
    await write('src/e0.rs', `mod own;\n${helloOf('e0').replace('"e0"', 'own::NAME')}`);
    await write('src/own.rs', 'pub const NAME: &str = "e0";\n');
  });
  after(async () => {
    await stack?.close();
    await folder?.remove();
  });

  it('edge deploy sends the files of each handler, and the API has them', async () => {
    await succeeds(['deploy']);
    for (const name of NAMES) expect(await ask(name)).to.equal(answerOf(name));
    const { stdout } = await succeeds(['endpoint', 'show', `GET ${HOST}/e0`, '--json']);
    expect(Object.keys((JSON.parse(stdout) as { files: object }).files)).to.deep.equal(
      [...Object.keys(BESIDE), 'src/own.rs'].sort(),
    );
  });

  it('edge diff finds nothing after a deploy, and edge export writes a folder that changes nothing', async () => {
    await succeeds(['diff', '--exit-code']);
    const exported = join(folder.path, 'exported');
    await succeeds(['export', '--stack', 'files', '-o', exported]);
    await succeeds(['diff', '--exit-code'], { cwd: exported });
  });

  it('the API takes the same files of each handler, and edge apply makes all handlers from the folder', async () => {
    for (const name of NAMES) {
      const own = name === 'e0' ? { 'src/own.rs': 'pub const NAME: &str = "e0";\n' } : {};
      const code = name === 'e0' ? `mod own;\n${helloOf('e0').replace('"e0"', 'own::NAME')}` : helloOf(name);
      const fields = { path: `/api/${name}`, code, entry: `src/${name}.rs`, files: { ...BESIDE, ...own } };
      await stack.deploy(fields);
      expect(await ask(`api/${name}`)).to.equal(answerOf(name));
    }
    const [applied, host] = [join(folder.path, 'applied'), 'files-apply.test'];
    await cp(project(), applied, { recursive: true });
    await write('edge.yaml', edgeFile({}, host, 'files-apply'), applied);
    await succeeds(['apply', applied, '--yes']);
    for (const name of NAMES) expect(await ask(name, host)).to.equal(answerOf(name));
  });

  it('edge dev deploys exactly the handlers that have the file that was saved', async () => {
    const dev = startEdge(['dev', '--domain', DEV_HOST, '--no-logs'], { env, cwd: project() });
    try {
      const live = () => dev.stdout().match(/^live GET \S+/gm) ?? [];
      const becomesLive = (count: number) =>
        eventually(() => expect(live(), dev.stderr()).to.have.length(count));
      await becomesLive(8);
      await dev.says('Watching');
      await write('src/own.rs', 'pub const NAME: &str = "own";\n');
      await becomesLive(9);
      expect(live()[8]).to.match(/\/e0$/);
      expect(await ask('e0', DEV_HOST)).to.equal(answerOf('own'));
      await write('page.html', '<b>\n');
      await becomesLive(17);
      for (const name of NAMES.slice(1))
        expect(await ask(name, DEV_HOST)).to.equal(answerOf(name).replace('<p>', '<b>'));
      // A mistake in a file of all is shown there.
      await write('src/common/words.rs', "\npub fn name() -> &'static str { 1 }\n");
      await dev.says(/error\[E0308\][\s\S]*--> src\/common\/words\.rs:2:/);
      await write('src/common/words.rs', String(BESIDE['src/common/words.rs']));
      // What is named and not there yet is said with its line, and taken when it is.
      await write('src/e0.rs', helloOf('e0').replace('mod common;', 'mod common;\nmod later;'));
      await dev.says('src/e0.rs:3: `mod later`: there is no src/later.rs, and no src/later/mod.rs');
      await write('src/later/mod.rs', '');
      await eventually(async () =>
        expect(await ask('e0', DEV_HOST)).to.equal(answerOf('e0').replace('<p>', '<b>')),
      );
    } finally {
      await dev.end();
    }
  });

  it('edge import takes a bundle of the same files, and all of its handlers serve', async () => {
    const paths = NAMES.map((name) => [
      `/bundle/${name}`,
      { get: { operationId: name, responses: { 200: { description: 'ok' } } } },
    ]);
    const spec = {
      openapi: '3.0.3',
      info: { title: 'Files', version: '1' },
      paths: Object.fromEntries(paths),
    };
    const beside = Object.entries(BESIDE).map(([path, content]): [string, string | Buffer] => [
      path,
      typeof content === 'string' ? content : Buffer.from(content.base64, 'base64'),
    ]);
    const zip = zipOf({
      'openapi.json': JSON.stringify(spec),
      ...Object.fromEntries(NAMES.map((name) => [`src/${name}.rs`, helloOf(name)])),
      ...Object.fromEntries(beside),
    });
    await writeFile(join(folder.path, 'files.zip'), zip);
    await succeeds(['import', 'bundle', join(folder.path, 'files.zip'), '--domain', HOST, '--start']);
    for (const name of NAMES) expect(await ask(`bundle/${name}`)).to.equal(answerOf(name));
  });

  it('edge deploy and edge apply refuse files outside of the folder, and say where they are named', async () => {
    await writeFile(join(folder.path, 'secret.txt'), 'secret');
    await write('src/e1.rs', `const SECRET: &str = include_str!("../../secret.txt");\n${helloOf('e1')}`);
    const outside =
      /src\/e1\.rs:1: `include_str!\("\.\.\/\.\.\/secret\.txt"\)`: \.\.\/secret\.txt is outside of the folder/;
    expect((await run(['deploy', 'src/e1.rs'])).stderr).to.match(outside);
    expect((await run(['apply', '--yes'])).stderr).to.match(outside);
    await write('src/e1.rs', `const SECRET: &str = include_str!("link.txt");\n${helloOf('e1')}`);
    await symlink(join(folder.path, 'secret.txt'), join(project(), 'src/link.txt'));
    const link = /src\/link\.txt cannot be read: it is outside of the folder, or a link that leads out of it/;
    expect((await run(['deploy', 'src/e1.rs'])).stderr).to.match(link);
    expect((await run(['apply', '--yes'])).stderr).to.match(link);
    await rm(join(project(), 'src/link.txt'));
    await write('src/e1.rs', helloOf('e1'));
  });

  it('edge deploy and edge apply name the file that an error of the compiler is in', async () => {
    const wrong = "// wrong\npub fn name() -> &'static str {\n    1\n}\n";
    const one = `${wrong}${ONE_FILE}`;
    const hello = (module: string) => `mod ${module};\n${one.replace('    1\n', '    "1"\n')}`;
    const errors = join(folder.path, 'errors');
    const cases: readonly (readonly [object, Record<string, string>, string])[] = [
      [{ handler: 'src/one.rs' }, { 'src/one.rs': one }, 'src/one.rs'],
      // rustc calls a source of one file handler.rs; this has two.
      [{ handler: 'two.rs' }, { 'two.rs': hello('handler'), 'handler.rs': wrong }, 'handler.rs'],
      [
        { handler: 'services/o/src/main.rs', root: 'services/o' },
        { 'services/o/src/main.rs': hello('common'), 'services/o/src/common.rs': wrong },
        'services/o/src/common.rs',
      ],
      [
        { handler: 'in/a folder/main.rs', root: 'in' },
        { 'in/a folder/main.rs': hello('common'), 'in/a folder/common.rs': wrong },
        'in/a folder/common.rs',
      ],
    ];
    for (const [number, [endpoint, files, named]] of cases.entries()) {
      const host = 'errors.test';
      const entry = { host, method: 'GET', route: `/wrong${number}`, ...endpoint };
      await write(
        'edge.yaml',
        JSON.stringify({ stack: 'errors', domains: [{ host }], endpoints: [entry] }),
        errors,
      );
      for (const [path, content] of Object.entries(files)) await write(path, content, errors);
      for (const args of [['deploy'], ['apply', '--yes']]) {
        const { stderr } = await run(args, { cwd: errors });
        expect(stderr, args[0]).to.include('error[E0308]').and.include(`--> ${named}:3:5\n`);
        const { error } = JSON.parse((await run([...args, '--json'], { cwd: errors })).stderr);
        expect(error, args[0]).to.include(`--> ${named}:3:5\n`);
      }
    }
    // The folder is also meant from within.
    const { stderr } = await run(['apply', '--yes'], { cwd: join(errors, 'in') });
    expect(stderr).to.include('--> in/a folder/common.rs:3:5\n');
  });

  it('edge deploy, edge diff and edge apply name what a handler has and cannot be sent', async () => {
    const links = join(folder.path, 'links');
    await writeFile(join(folder.path, 'secret.txt'), 'secret');
    await write('pages/de/a.html', '', links);
    await write('src/hello.rs', '', links);
    await symlink('pages', join(links, 'templates'));
    await symlink('../pages/de', join(links, 'pages/link'));
    await symlink(join(folder.path, 'secret.txt'), join(links, 'secret.txt'));
    await symlink('nowhere.txt', join(links, 'broken.txt'));
    await symlink('loop.rs', join(links, 'src/loop.rs'));
    await symlink('../../secret.txt', join(links, 'src/link.txt'));
    await mkdir(join(folder.path, 'elsewhere'));
    await write('src/hello.rs', ONE_FILE, join(folder.path, 'elsewhere'));
    await symlink('../elsewhere', join(links, 'away'));
    const linked = (path: string) => `includes ${path}, which is a link to a folder; these are not followed`;
    const elsewhere = 'cannot be read: it is outside of the folder, or a link that leads out of it';
    for (const [members, head, expected] of [
      [{ include: ['templates'] }, '', `edge.yaml: "templates" ${linked('templates')}`],
      [{ include: ['templates/**/*.html'] }, '', linked('templates')],
      [{ include: ['pages'] }, '', linked('pages/link')],
      [{ include: ['secret.txt'] }, '', `edge.yaml: secret.txt ${elsewhere}`],
      [{ include: ['*.txt'] }, '', 'edge.yaml: broken.txt cannot be read: there is no such file'],
      [{}, 'mod loop;', 'src/hello.rs:1: `mod loop`: src/loop.rs cannot be read: ELOOP'],
      [{}, 'const A: &str = include_str!("link.txt");', `src/link.txt ${elsewhere}`],
      [{ root: 'away', handler: 'away/src/hello.rs' }, '', `the handler away/src/hello.rs ${elsewhere}`],
    ] as const) {
      const [host, handler] = ['links.test', 'src/hello.rs'];
      const entry = { host, method: 'GET', route: '/links', handler, ...members };
      await write('edge.yaml', JSON.stringify({ stack: 'links', endpoints: [entry] }), links);
      await write(handler, `${head}\n${ONE_FILE}`, links);
      for (const args of [['deploy'], ['diff'], ['apply', '--yes']]) {
        const { code, stderr } = await run(args, { cwd: links });
        expect([code, stderr.includes(expected)], `${args[0]} ${expected}: ${stderr}`).to.deep.equal([
          1,
          true,
        ]);
      }
    }
  });

  it('edge deploy and edge diff refuse the same folders as a root, with the same words', async () => {
    const roots = join(folder.path, 'roots');
    await write('services/o/hello.rs', ONE_FILE, roots);
    for (const [root, expected] of [
      ['services/o/', 'root: must not have an empty name, nor "."'],
      ['', 'root: must not be empty'],
      ['services/../services/o', 'root: must not leave the folder: it has ".."'],
    ] as const) {
      const entry = { host: 'roots.test', method: 'GET', route: '/', handler: 'services/o/hello.rs', root };
      await write('edge.yaml', JSON.stringify({ stack: 'roots', endpoints: [entry] }), roots);
      for (const command of ['deploy', 'diff'])
        expect((await run([command], { cwd: roots })).stderr, command).to.include(expected);
    }
  });

  it('edge apply takes what handlers include by a pattern, and a root of their own', async () => {
    await write(
      'services/orders/src/main.rs',
      helloOf('orders').replace('"orders"', 'include_str!(concat!("../sql/", "a.sql")).trim()'),
    );
    for (const [path, content] of Object.entries(BESIDE))
      await write(
        `services/orders/${path}`,
        typeof content === 'string' ? content : Buffer.from(content.base64, 'base64'),
      );
    await write('services/orders/sql/a.sql', 'SELECT 1\n');
    const orders = { handler: 'services/orders/src/main.rs', root: 'services/orders', include: ['sql/**'] };
    await write('edge.yaml', edgeFile({ e2: orders }));
    await succeeds(['apply', '--yes']);
    expect(await ask('e2')).to.equal(answerOf('SELECT 1'));
    await succeeds(['deploy', 'services/orders/src/main.rs']);
    expect(await ask('e2')).to.equal(answerOf('SELECT 1'));
    await succeeds(['diff', '--exit-code']);
  });
});
