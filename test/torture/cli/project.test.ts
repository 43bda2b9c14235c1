/** A folder of `edge init`, and `edge dev`, which deploys what is saved in it. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type EdgeOptions, edge, type RunningEdge, startEdge } from '../../support/edge.js';
import { eventually } from '../../support/eventually.js';
import { type Stack, startStack } from '../../support/processes.js';
import { type TempDir, tempDir } from '../../support/temp.js';

describe('a folder of edge init', function () {
  this.timeout(600_000);
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('project');
  });
  after(() => folder.remove());

  const run = async (args: string[], options: EdgeOptions = {}) => {
    const result = await edge(args, { cwd: folder.path, ...options });
    expect(result.code, `edge ${args.join(' ')}: ${result.stderr}`).to.equal(0);
    return result.stdout;
  };

  it('edge init makes a folder from any template, with what the template needs', async () => {
    const names = (await run(['init', '--template', 'help'])).trim().split('\n');
    expect(names).to.include.members(['hello', 'async-sleep', 'db-sqlite']);
    expect(names).not.to.include('petstore');
    for (const name of names) {
      await run(['init', name, '--template', name]);
      expect(await readdir(join(folder.path, name))).to.have.members([
        ...['.cargo', '.gitignore', 'Cargo.toml', 'edge.schema.json', 'edge.yaml', 'src'],
      ]);
    }
    expect(await readFile(join(folder.path, 'async-sleep/Cargo.toml'), 'utf8')).to.include(
      'features = ["async"]',
    );
    expect(await readFile(join(folder.path, 'db-sqlite/edge.yaml'), 'utf8'))
      .to.include('type sqlite as db')
      .and.include('bindings: {db: NAME}');
  });

  it('edge init writes nothing where a file exists', async () => {
    const taken = join(folder.path, 'taken');
    await mkdir(taken);
    await writeFile(join(taken, 'Cargo.toml'), 'mine');
    const { code, stderr } = await edge(['init', 'taken'], { cwd: folder.path });
    expect(code).to.equal(2);
    expect(stderr).to.include('Cargo.toml exists; nothing was written');
    expect(await readdir(taken)).to.deep.equal(['Cargo.toml']);
  });

  it('edge init names the registry of its gateway, and says what cargo needs', async () => {
    const nothing = { XDG_CONFIG_HOME: join(folder.path, 'nothing') };
    const local = await edge(['init', 'local'], { cwd: folder.path, env: nothing });
    expect(local.stderr).to.include('No gateway is configured').and.include('http://127.0.0.1:8081/crates/');
    const env = { ...nothing, EDGE_URL: 'https://gateway.example', EDGE_TOKEN: 'secret' };
    const { code, stdout, stderr } = await edge(['init', 'remote'], { cwd: folder.path, env });
    expect(code).to.equal(0);
    expect(stderr).to.include('CARGO_REGISTRIES_EDGE_TOKEN').and.include('cargo login --registry edge');
    expect(stdout + stderr).not.to.include('secret');
    const config = await readFile(join(folder.path, 'remote/.cargo/config.toml'), 'utf8');
    expect(config).to.include('index = "sparse+https://gateway.example/crates/"').and.not.include('secret');
  });

  it('edge init --existing keeps what a folder has, and adds what it lacks', async () => {
    const root = join(folder.path, 'existing');
    await mkdir(join(root, 'src'), { recursive: true });
    const manifest =
      '# ours\n[package]\nname = "ours" # a name\nversion = "2.0.0"\nedition = "2021"\n\n[dependencies] # few\nserde = "1.0.200"\n';
    await writeFile(join(root, 'Cargo.toml'), manifest);
    await writeFile(join(root, 'src/main.rs'), 'fn main() {}\n');
    const said = await run(['init', 'existing', '--existing']);
    expect(said).to.include('Made in existing: edge.yaml, src/hello.rs').and.include('Added to: Cargo.toml');
    const added = await readFile(join(root, 'Cargo.toml'), 'utf8');
    expect(added)
      .to.include('# ours\n[package]\nname = "ours" # a name\n')
      .and.include(
        '[dependencies] # few\nrust-edge-gateway-sdk = { version = "0.1", registry = "edge" }\nserde_json = "1"\nserde = "1.0.200"\n',
      )
      .and.include('[[bin]]\nname = "hello"\npath = "src/hello.rs"\n');
    expect(await run(['init', 'existing', '--existing'])).to.include('Nothing is missing in existing');
    expect(await readFile(join(root, 'Cargo.toml'), 'utf8')).to.equal(added);
    // Where a line of its own would not do, its author adds it.
    const inline = 'dependencies = { serde = "1" }\n[package]\nname = "ours"\nversion = "2.0.0"\n';
    await writeFile(join(root, 'Cargo.toml'), inline);
    const { code, stderr } = await edge(['init', 'existing', '--existing'], { cwd: folder.path });
    expect(code).to.equal(0);
    expect(stderr).to.include('Cargo.toml was left as it is; add to it:').and.include('registry = "edge"');
    expect(await readFile(join(root, 'Cargo.toml'), 'utf8')).to.equal(inline);
  });

  describe('edge dev', () => {
    let stack: Stack;
    let env: Record<string, string>;
    let dev: RunningEdge | undefined;
    const shop = () => join(folder.path, 'dev');
    const source = () => join(shop(), 'src/hello.rs');
    const handler = (greeting: string) => `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    println!("greets with ${greeting}");
    Response::text(200, format!("${greeting} {}", req.path_param("name").cloned().unwrap_or_default()))
}

handler_loop!(handle);
`;
    const answer = async () =>
      (await stack.gateway.get('/hello/Ada', { headers: { host: 'ada-lovelace-dev.localhost' } })).body;

    before(async () => {
      stack = await startStack();
      env = { XDG_CONFIG_HOME: join(folder.path, 'config'), EDGE_URL: stack.apiUrl, USER: 'Ada Lovelace' };
      await run(['init', 'dev', '--host', 'shop.test']);
    });
    after(async () => {
      await dev?.end();
      await stack?.close();
    });

    it('edge dev deploys to a host of its user, and again with every save', async () => {
      await writeFile(source(), handler('Hello'));
      dev = startEdge(['dev'], { env, cwd: shop() });
      await dev.says(/live GET http:\/\/ada-lovelace-dev\.localhost:\d+\/hello\/\{name\} \(version 1/);
      expect(await answer()).to.equal('Hello Ada');
      await dev.says('Watching');
      await writeFile(source(), handler('Servus'));
      await eventually(async () => expect(await answer()).to.equal('Servus Ada'));
      // As editors save that write another file and rename it.
      await writeFile(`${source()}.new`, handler('Moin'));
      await rename(`${source()}.new`, source());
      await eventually(async () => expect(await answer()).to.equal('Moin Ada'));
    });

    it('edge dev shows the errors of the compiler with file and line, and deploys the next save', async () => {
      await writeFile(source(), handler('Oh').replace('Response::text', 'Response::txt'));
      await dev?.says(/error\[E0599\][\s\S]*--> src\/hello\.rs:5:15/);
      expect(await answer()).to.equal('Moin Ada');
      await writeFile(source(), handler('Again'));
      await eventually(async () => expect(await answer()).to.equal('Again Ada'));
    });

    it('edge dev makes its endpoint again at the next save after it was deleted', async () => {
      const name = 'GET ada-lovelace-dev.localhost/hello/{name}';
      await run(['endpoint', 'delete', name, '--yes'], { env });
      await writeFile(source(), handler('Back'));
      await dev?.says('(not_found)');
      await writeFile(source(), handler('Back'));
      await eventually(async () => expect(await answer()).to.equal('Back Ada'));
      await writeFile(source(), handler('Again'));
      await eventually(async () => expect(await answer()).to.equal('Again Ada'));
    });

    it('edge dev shows the logs of its host, and of no other', async () => {
      await stack.deploy({ path: '/other', code: handler('elsewhere') });
      await stack.gateway.get('/other');
      await answer();
      await dev?.says('greets with Again');
      expect(dev?.stdout()).not.to.include('elsewhere');
    });

    it('edge dev follows changes of edge.yaml, and waits while files are damaged or missing', async () => {
      const file = join(shop(), 'edge.yaml');
      const text = await readFile(file, 'utf8');
      await writeFile(join(shop(), 'src/bye.rs'), handler('Bye'));
      await writeFile(
        file,
        `${text}  - {host: shop.test, method: GET, route: /bye, name: bye, handler: src/bye.rs}\n`,
      );
      await dev?.says(/live GET \S+\/bye /);
      await writeFile(file, `${text}  - [`);
      await dev?.says('edge.yaml: ');
      // As a checkout of git, or an editor that removes a file before it writes it.
      await rm(file);
      await dev?.says('edge.yaml cannot be read');
      await writeFile(file, text);
      await writeFile(source(), handler('Back again'));
      await eventually(async () => expect(await answer()).to.equal('Back again Ada'));
      await rename(join(shop(), 'src'), join(shop(), 'elsewhere'));
      await dev?.says('handler src/hello.rs cannot be read');
      await rename(join(shop(), 'elsewhere'), join(shop(), 'src'));
      await writeFile(source(), handler('Again'));
      await eventually(async () => expect(await answer()).to.equal('Again Ada'));
    });

    it('edge dev ends with Ctrl-C, and its endpoints stay', async () => {
      const ended = await dev?.end('SIGINT');
      expect(ended?.code).to.equal(130);
      expect(ended?.stderr)
        .to.include('Interrupted.')
        .and.not.match(/\n\s+at .*\.js/);
      expect(await answer()).to.equal('Again Ada');
      dev = undefined;
    });
  });
});
