import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { loadDriver, NODE_SERVICE_TYPES } from '../../../src/actors/drivers/index.js';

/** Those loaded by `require`, which keeps a list. */
const LIBRARIES = ['mongodb', 'mysql2', 'ssh2', 'basic-ftp', 'memjs'];

/** Returns the client libraries that a fresh process has loaded with these drivers. */
async function librariesOf(types: readonly string[]): Promise<string[]> {
  const drivers = fileURLToPath(new URL('../../../src/actors/drivers/index.js', import.meta.url));
  const program = `
    import { createRequire } from 'node:module';
    const { loadDriver } = await import(${JSON.stringify(drivers)});
    for (const type of ${JSON.stringify(types)}) await loadDriver(type);
    console.log(Object.keys(createRequire(${JSON.stringify(drivers)}).cache).join('\\n'));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    maxBuffer: 16 * 1024 * 1024,
  });
  return LIBRARIES.filter((library) => stdout.includes(`/node_modules/${library}/`));
}

describe('drivers', () => {
  it('a driver exists for each type of service that runs in Node', async () => {
    for (const type of NODE_SERVICE_TYPES) expect((await loadDriver(type)).type).to.equal(type);
  });

  it('drivers load their client libraries on demand', async () => {
    expect(await librariesOf([])).to.deep.equal([]);
    expect(await librariesOf(['mongodb'])).to.deep.equal(['mongodb']);
    expect(await librariesOf(NODE_SERVICE_TYPES)).to.have.members(LIBRARIES);
  });
});
