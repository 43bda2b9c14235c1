/** A Cargo project with a workspace: its local crates are compiled with the handler, and by cargo. */
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { execa } from 'execa';
import { type CrateRegistry, startCrateRegistry } from '../../support/crate-registry.js';
import { edge } from '../../support/edge.js';
import { type Stack, startStack } from '../../support/processes.js';
import { type TempDir, tempDir } from '../../support/temp.js';

const FILES = {
  'crates/greetings/Cargo.toml':
    '[package]\nname = "greetings"\nversion = "0.1.0"\nedition.workspace = true\n\n[dependencies]\nnames.workspace = true\n',
  'crates/greetings/src/lib.rs':
    'pub fn greet(name: &str) -> String {\n    format!("Hello, {}!", names::full(name))\n}\n',
  'crates/names/Cargo.toml': '[package]\nname = "names"\nversion = "0.1.0"\nedition = "2021"\n',
  'crates/names/src/lib.rs':
    'pub fn full(name: &str) -> String {\n    format!("{name} {}", include_str!("surname.txt"))\n}\n',
  'crates/names/src/surname.txt': 'Lovelace',
  'src/lib.rs': 'pub mod ends;\n',
  'src/ends.rs': 'pub fn end(text: &str) -> String {\n    format!("{text} Bye.")\n}\n',
  'src/hello.rs': `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    let r#gen = req.path_param("name").cloned().unwrap_or_default();
    Response::text(200, shop::ends::end(&greetings::greet(&r#gen)))
}

handler_loop!(handle);

#[cfg(test)]
mod tests {
    #[test]
    fn greets() {
        assert_eq!(greetings::greet("Ada"), "Hello, Ada Lovelace!");
    }
}
`,
};

describe('a Cargo project with local crates', function () {
  this.timeout(600_000);
  let stack: Stack;
  let cratesIo: CrateRegistry;
  let folder: TempDir;
  const shop = () => join(folder.path, 'shop');
  const run = async (...args: string[]) => {
    const env = { XDG_CONFIG_HOME: join(folder.path, 'config'), EDGE_URL: stack.apiUrl };
    const result = await edge(args, { cwd: folder.path, env });
    expect(result.code, `edge ${args.join(' ')}: ${result.stderr}`).to.equal(0);
    return result.stdout;
  };
  const answer = async () => (await stack.gateway.get('/hello/Ada', { headers: { host: 'shop.test' } })).body;

  before(async () => {
    folder = await tempDir('cargo-project');
    cratesIo = await startCrateRegistry([]);
    stack = await startStack();
    await run('init', 'shop', '--host', 'shop.test');
    for (const [path, text] of Object.entries(FILES)) {
      await mkdir(dirname(join(shop(), path)), { recursive: true });
      await writeFile(join(shop(), path), text);
    }
    const manifest = await readFile(join(shop(), 'Cargo.toml'), 'utf8');
    const workspace =
      '[workspace]\nmembers = ["crates/*"]\n\n[workspace.package]\nedition = "2024"\n\n[workspace.dependencies]\nnames = { path = "crates/names" }\n';
    await writeFile(
      join(shop(), 'Cargo.toml'),
      `${manifest.replace('[workspace]\n', workspace)}greetings = { path = "crates/greetings" }\n`,
    );
  });
  after(async () => {
    await stack?.close();
    await cratesIo?.close();
    await folder?.remove();
  });

  it('cargo tests it with the SDK of the gateway, and writes a lock', async () => {
    await cp('rust/sdk/Cargo.lock', join(shop(), 'Cargo.lock'));
    const { stdout } = await execa('cargo', ['test', '--workspace'], {
      cwd: shop(),
      env: { CARGO_HOME: cratesIo.cargoHome },
    });
    expect(stdout).to.match(/test tests::greets \.\.\. ok/);
    expect(await readFile(join(shop(), 'Cargo.lock'), 'utf8')).to.include('name = "greetings"');
  });

  it('edge apply and edge deploy compile a handler with its local crates, the library of its package and its lock', async () => {
    await run('apply', 'shop', '--yes');
    expect(await answer()).to.equal('Hello, Ada Lovelace! Bye.');
    await writeFile(join(shop(), 'crates/names/src/surname.txt'), 'Byron');
    expect(await run('deploy', 'shop')).to.include('version 2 serves');
    expect(await answer()).to.equal('Hello, Ada Byron! Bye.');
  });

  it('edge diff finds nothing to change after edge deploy, and edge apply changes a crate', async () => {
    expect(await run('diff', 'shop')).not.to.include('src/hello.rs');
    await run('apply', 'shop', '--yes');
    await writeFile(
      join(shop(), 'src/ends.rs'),
      'pub fn end(text: &str) -> String {\n    text.to_owned()\n}\n',
    );
    expect(await run('diff', 'shop')).to.include('src/ends.rs');
    await run('apply', 'shop', '--yes');
    expect(await answer()).to.equal('Hello, Ada Byron!');
  });

  it('an export of it changes nothing when it is applied, and cargo can check it', async () => {
    const out = join(folder.path, 'out');
    await run('export', '--domain', 'shop.test', '-o', out);
    expect(await run('diff', 'out')).to.match(/nothing|no changes/i);
  });
});
