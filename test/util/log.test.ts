import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { SECRET_SETTINGS } from '../../src/model/service-configs.js';

const CONFIGS = new URL('../../src/model/service-configs.js', import.meta.url).href;
const START = new URL('../../src/bootstrap/start-process.js', import.meta.url).href;

/** The output of a process that logs these values. */
async function logged(values: readonly unknown[]): Promise<string[]> {
  const program = `
    import { openProcess } from ${JSON.stringify(START)};
    import { SECRET_SETTINGS } from ${JSON.stringify(CONFIGS)};
    const { log } = openProcess('test', () => ({ LOG_LEVEL: 'info' }), SECRET_SETTINGS);
    for (const value of ${JSON.stringify(values)}) log.info(value, 'message');`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  return stdout.trim().split('\n');
}

describe('the log of a process', () => {
  const hidden = [...SECRET_SETTINGS, 'access_key', 'config', 'authorization', 'cookie'];

  it('hides secrets in log records, and in objects up to two levels within', async () => {
    const values = hidden.flatMap((name) => [
      { [name]: 'hush' },
      { service: { [name]: 'hush' } },
      { request: { headers: { [name]: 'hush' } } },
      { services: [{ [name]: { key: 'hush' } }] },
    ]);
    const lines = await logged(values);
    expect(lines).to.have.lengthOf(values.length);
    for (const [at, line] of lines.entries()) {
      expect(line, JSON.stringify(values[at])).to.include('[Redacted]').and.not.include('hush');
    }
  });

  it('logs values that are no secrets as they are', async () => {
    const value = { endpoint_id: 'e', request: { text: 'no password given' }, counts: { config_changes: 3 } };
    const [line = ''] = await logged([value]);
    expect(JSON.parse(line)).to.deep.include({ ...value, name: 'test', msg: 'message' });
  });
});
