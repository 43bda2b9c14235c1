/** What `npm run up` runs once all is built. More in test/torture. */
import { expect } from 'chai';
import { descendantsOf } from '../support/process-state.js';
import { BUILT_UP, START_LIMIT_MS, type UpSite, upSite } from '../support/up.js';

describe('npm run up', function () {
  this.timeout(START_LIMIT_MS + 60_000);
  let site: UpSite;
  before(async () => {
    site = await upSite();
  });
  after(() => site?.remove());

  it('npm run up starts everything from nothing, shows a request that works, and ends on Ctrl-C', async () => {
    const up = site.run(process.execPath, [BUILT_UP]);
    expect((await up.curl()).text).to.include('Hello');
    for (const step of ['Starting PostgreSQL', 'Migrating', 'Starting worker', 'Deploying the sample'])
      expect(up.output()).to.include(step);
    expect(up.output()).to.include(`http://127.0.0.1:${site.port}/api`);
    const all = [up.pid, ...descendantsOf(up.pid).map(({ pid }) => pid)];
    expect(all.length).to.be.at.least(6);
    up.interrupt('SIGINT');
    expect(await up.ended, up.output()).to.deep.equal({ code: 0, signal: null });
    await site.expectNothingLeft(all);
  });

  it('npm run up prints its usage, and starts nothing, when it does not know an argument', async () => {
    for (const argument of ['--hepl', 'now']) {
      const up = site.run(process.execPath, ['scripts/up.mjs', argument]);
      expect(await up.ended).to.deep.equal({ code: 2, signal: null });
      expect(up.output()).to.include(`'${argument}'`).and.include('Usage: npm run up');
      expect(up.output()).not.to.include('Building');
    }
    const help = site.run(process.execPath, ['scripts/up.mjs', '--help']);
    expect(await help.ended).to.deep.equal({ code: 0, signal: null });
    expect(help.output()).to.match(/Usage: npm run up[\s\S]*GATEWAY_PORT \(default: 8080\)\n {4}Port of/);
    expect(help.output()).not.to.include('Building');
  });

  it('npm run up reports invalid settings', async () => {
    const folder = site.run(process.execPath, [BUILT_UP], { DATA_DIR: '/proc/nope' });
    expect(await folder.ended).to.deep.equal({ code: 1, signal: null });
    expect(folder.output().trim()).to.equal(
      'Edge Gateway could not start. DATA_DIR: /proc/nope cannot be used: no folder can be made there. ' +
        'Set DATA_DIR to a folder that this user can write to.',
    );
    const up = site.run(process.execPath, [BUILT_UP], { PORT: 'eighty' });
    expect(await up.ended).to.deep.equal({ code: 1, signal: null });
    expect(up.output()).to.match(/PORT: must be a whole number from 0 to 65535, not "eighty"/);
  });
});
