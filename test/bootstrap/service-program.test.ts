import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { reachableNodeProgram } from '../../src/bootstrap/service-program.js';
import { HAS_UNTRUSTED_USERS } from '../../src/util/untrusted-users.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('the program of services in Node', () => {
  let checkout: TempDir;
  let script: string;
  const copies = new Set<string>();

  before(async function () {
    if (!HAS_UNTRUSTED_USERS) this.skip();
    checkout = await tempDir('checkout');
    const folder = join(checkout.path, 'service');
    await mkdir(folder);
    script = join(folder, 'service.js');
    await writeFile(script, 'import "./chunk.js";');
    await writeFile(join(folder, 'chunk.js'), '1');
    await writeFile(join(folder, 'chunk.js.map'), '{}');
    for (const name of await readdir(folder)) await chmod(join(folder, name), 0o644);
    await chmod(folder, 0o755);
  });
  afterEach(async () => {
    await chmod(dirname(script), 0o755);
    for (const copy of copies) await rm(copy, { recursive: true });
    copies.clear();
  });
  after(() => checkout?.remove());

  const reachable = async () => {
    const found = await reachableNodeProgram({ node: '/bin/sh', script });
    if (found.script !== script) copies.add(dirname(found.script));
    return found;
  };
  const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

  it('runs the program of services where it is, if their users can read it', async () => {
    expect(await reachable()).to.deep.equal({ node: '/bin/sh', script });
  });

  it('copies the program of services once, if their users cannot enter its folder, and again when it changes', async () => {
    await chmod(dirname(script), 0o700);
    const [first, second] = await Promise.all([reachable(), reachable()]);
    expect(second).to.deep.equal(first);
    expect(first.node).to.equal('/bin/sh');
    const copy = dirname(first.script);
    expect(await readdir(copy)).to.have.members(['service.js', 'chunk.js']);
    expect(await readFile(join(copy, 'chunk.js'), 'utf8')).to.equal('1');
    expect([await modeOf(copy), await modeOf(first.script)]).to.deep.equal([0o755, 0o755]);
    await writeFile(join(dirname(script), 'chunk.js'), 'of another version');
    expect((await reachable()).script).not.to.equal(first.script);
  });

  it('copies the program of services that an installation with a umask of 077 has made', async () => {
    await chmod(script, 0o600);
    expect((await reachable()).script).not.to.equal(script);
    await chmod(script, 0o644);
  });
});
