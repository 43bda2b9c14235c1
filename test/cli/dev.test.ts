/**
 * What `edge dev` notices in a folder. The API is one that accepts everything: what it gets is what counts, and a real
 * one would compile for minutes what is saved here. With a gateway: `test/torture/cli/sources.test.ts`.
 */
import { once } from 'node:events';
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { dirname, join } from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { type RunningEdge, startEdge } from '../support/edge.js';
import { eventually } from '../support/eventually.js';
import { type TempDir, tempDir } from '../support/temp.js';

/** What is deployed, as it is sent. */
interface Deployed {
  readonly code: string;
  readonly files: Readonly<Record<string, string>> | null;
}

describe('edge dev in a folder that changes', function () {
  this.timeout(300_000);
  let folder: TempDir;
  let server: Server;
  let url: string;
  let dev: RunningEdge | undefined;
  /** The last deployment of each route. */
  const deployed = new Map<string, Deployed>();
  let project: string;

  const answer = async (target: string, body: unknown): Promise<object> => {
    const { pathname, searchParams } = new URL(target, 'http://x');
    const [, route] = /^\/api\/endpoints\/(.+)\/deploy$/.exec(decodeURIComponent(pathname)) ?? [];
    if (route !== undefined) deployed.set(route.replace(/^.*?\//, '/'), body as Deployed);
    if (pathname === '/api/') return { gateway: { port: 80 } };
    if (pathname === '/api/resolve') return { id: searchParams.get('name') };
    return { version: 1, stack: null };
  };

  before(async () => {
    folder = await tempDir('dev');
    server = createServer((request, response) => {
      const body = request.method === 'POST' ? json(request) : Promise.resolve();
      void body
        .then((value) => answer(request.url ?? '', value))
        .then((data) => response.end(JSON.stringify({ ok: true, data })));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  });
  after(async () => {
    server?.closeAllConnections();
    await new Promise((resolve) => server?.close(resolve));
    await folder?.remove();
  });
  beforeEach(() => {
    deployed.clear();
    project = join(folder.path, 'project');
  });
  afterEach(async () => {
    await dev?.end();
    dev = undefined;
    await rm(project, { recursive: true, force: true });
  });

  const write = async (path: string, content: string) => {
    const file = join(project, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
  };
  /** @param members of each endpoint, by its route */
  const edgeFile = (members: Readonly<Record<string, object>>) =>
    write(
      'edge.yaml',
      JSON.stringify({
        endpoints: Object.entries(members).map(([route, own]) => ({
          ...{ host: 'dev.test', method: 'GET', route },
          ...own,
        })),
      }),
    );
  const start = async () => {
    const env = { XDG_CONFIG_HOME: folder.path, EDGE_URL: url, EDGE_TOKEN: 'any' };
    dev = startEdge(['dev', '--no-logs', '--domain', 'dev.test'], { env, cwd: project });
    await dev.says('Watching');
    return dev;
  };
  const serves = (route: string, path: string, content: string) =>
    eventually(() => expect(deployed.get(route)?.files?.[path], dev?.stderr()).to.equal(content));

  it('edge dev deploys what is saved while it looks for the files of 200 handlers that share ten', async () => {
    const routes = Array.from({ length: 200 }, (_, number) => `/e${number}`);
    const shared = Array.from({ length: 10 }, (_, number) => `m${number}`);
    await edgeFile(Object.fromEntries(routes.map((route) => [route, { handler: `src${route}.rs` }])));
    const code = shared.map((name) => `mod ${name};\n`).join('');
    for (const route of routes) await write(`src${route}.rs`, `${code}// ${route}\n`);
    for (const name of shared) await write(`src/${name}.rs`, `fn f() { g(1, 2); }\n`.repeat(400));
    await start();
    const contents = Array.from({ length: 10 }, (_, number) => `// ${number}\n`);
    for (const content of contents) {
      await write('src/m0.rs', content);
      // Longer than it waits for editors, so that it reads between two of them.
      await delay(60);
    }
    for (const route of routes) await serves(route, 'src/m0.rs', contents.at(-1) ?? '');
  });

  it('edge dev looks into those folders only that an include can mean, and takes new ones in them', async () => {
    await edgeFile({ '/one': { handler: 'src/one.rs', include: ['templates', 'sql/*/*.sql'] } });
    await write('src/one.rs', '// one\n');
    await write('templates/de/a.html', 'a');
    await write('sql/one/a.sql', 'SELECT 1');
    await write('sql/one/deep/a.sql', 'SELECT 2');
    for (let number = 0; number < 50; number++) await write(`photos/${number}/x.txt`, '');
    const { pid } = await start();
    const files = () => Object.keys(deployed.get('/one')?.files ?? {}).sort();
    expect(files()).to.deep.equal(['sql/one/a.sql', 'templates/de/a.html']);
    // The folder, src, sql, sql/one, templates and templates/de.
    await eventually(async () => expect(await watchCount(pid)).to.equal(6));
    await write('templates/en/a.html', 'b');
    await serves('/one', 'templates/en/a.html', 'b');
    await write('templates/en/a.html', 'c');
    await serves('/one', 'templates/en/a.html', 'c');
  });

  it('edge dev goes on with folders that were replaced, and with those above them', async () => {
    await edgeFile({ '/one': { handler: 'services/one/src/one.rs' } });
    await write('services/one/src/one.rs', 'mod two;\n');
    const module = 'services/one/src/two.rs';
    await write(module, '// 0\n');
    await start();
    await serves('/one', module, '// 0\n');
    await rename(join(project, 'services'), join(project, 'before'));
    await dev?.says('cannot be read');
    await cp(join(project, 'before'), join(project, 'services'), { recursive: true });
    for (const content of ['// 1\n', '// 2\n']) {
      await write(module, content);
      await serves('/one', module, content);
    }
    await rm(join(project, 'services/one/src'), { recursive: true });
    await write('services/one/src/one.rs', 'mod two;\n');
    for (const content of ['// 3\n', '// 4\n']) {
      await write(module, content);
      await serves('/one', module, content);
    }
  });

  it('edge dev takes a module whose folders are made one after the other', async () => {
    await edgeFile({ '/one': { handler: 'src/one.rs' } });
    await write('src/one.rs', '#[path = "a/b/c.rs"]\nmod c;\n');
    const running = await start();
    const refusals = () => running.stderr().split('there is no src/a/b/c.rs').length;
    for (const path of ['src/a', 'src/a/b']) {
      const before = await steady(refusals);
      await mkdir(join(project, path));
      await eventually(() => expect(refusals(), path).to.be.greaterThan(before));
    }
    await write('src/a/b/c.rs', '// c\n');
    await serves('/one', 'src/a/b/c.rs', '// c\n');
  });
});

/** A number that does not grow any more. */
async function steady(value: () => number): Promise<number> {
  for (let before = value(); ; before = value()) {
    await delay(300);
    if (value() === before) return before;
  }
}

/** How many folders a process watches. */
async function watchCount(pid: number): Promise<number> {
  const folder = `/proc/${pid}/fdinfo`;
  const texts = await Promise.all(
    (await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8').catch(() => '')),
  );
  return texts.join('\n').match(/^inotify wd:/gm)?.length ?? 0;
}
