/** `edge dev` where no gateway is configured: it starts one of its checkout, and ends it. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { edge } from '../support/edge.js';
import { eventually } from '../support/eventually.js';
import { call } from '../support/http.js';
import { type TempDir, tempDir } from '../support/temp.js';
import { checkoutCopy, START_LIMIT_MS, type UpSite, upSite } from '../support/up.js';

describe('edge dev without a gateway', function () {
  this.timeout(START_LIMIT_MS + 60_000);
  let copy: TempDir;
  let folder: TempDir;
  let site: UpSite;
  before(async () => {
    copy = await checkoutCopy();
    folder = await tempDir('dev-local');
    site = await upSite(copy.path);
    await mkdir(join(folder.path, 'config'));
  });
  after(async () => {
    await site?.remove();
    await folder?.remove();
    await copy?.remove();
  });

  it('edge dev starts a gateway when none is configured, deploys to it, and ends it with Ctrl-C', async () => {
    const env = { XDG_CONFIG_HOME: join(folder.path, 'config'), EDGE_URL: '', EDGE_TOKEN: '' };
    const project = join(folder.path, 'shop');
    expect((await edge(['init', project], { env })).code).to.equal(0);
    const program = [join(copy.path, 'cli/bin/edge.js'), 'dev', project, '--domain', 'dev.test'];
    const running = site.run(process.execPath, program, env);
    const url = await running.printed(/live GET (http:\S+)/);
    expect(running.output()).to.include(`starting one of this checkout at http://127.0.0.1:${site.port}`);
    expect(url).to.equal(`http://dev.test:${site.gatewayPort}/hello/{name}`);
    const ask = async () =>
      (await call(`http://127.0.0.1:${site.gatewayPort}/hello/Ada`, { headers: { host: 'dev.test' } })).text;
    expect(await ask()).to.include('Hello, Ada!');

    const file = join(project, 'src/hello.rs');
    await writeFile(file, (await readFile(file, 'utf8')).replace('Hello, {name}', 'Servus, {name}'));
    await eventually(async () => expect(await ask(), running.output()).to.include('Servus, Ada!'));

    const all = site.processes();
    expect(all.length).to.be.at.least(5);
    running.interrupt('SIGINT');
    expect(await running.ended, running.output()).to.deep.equal({ code: 130, signal: null });
    await site.expectNothingLeft(all);
  });
});
