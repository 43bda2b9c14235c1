/** A machine without Rust: it gets the native programs from another one of its kind. More in test/torture. */
import type { ChildProcess } from 'node:child_process';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { createClient } from '../support/client.js';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { freePort } from '../support/ports.js';
import { createDatabase } from '../support/postgres.js';
import { type CopyWithoutCargo, copyWithoutCargo, ended } from '../support/without-cargo.js';

describe('a machine without cargo', () => {
  let copy: CopyWithoutCargo;
  before(async () => {
    copy = await copyWithoutCargo();
  });
  after(() => copy?.remove());

  it('lets a service wait for its native program until it is built', async () => {
    const program = copy.at('dist/native/sqlite-service');
    await rename(program, `${program}.later`);
    const [database, port] = [await createDatabase(), await freePort()];
    const env = {
      DATABASE_URL: database.url,
      DATA_DIR: join(copy.folder, 'data'),
      PORT: String(port),
    };
    const processes: ChildProcess[] = [];
    try {
      for (const name of ['web', 'actor-host']) processes.push(await copy.start(name, env));
      const api = createClient(`http://127.0.0.1:${port}`);
      const service = { name: 'db', service_type: 'sqlite', config: { path: 'a.db' } };
      const { id } = expectData<{ id: string }>(await api.post('/api/services', service), 201);
      const url = `/api/services/${id}`;
      const what = 'the program of sqlite services is not built yet';
      const activated = (await api.post(`${url}/activate`)).body;
      expect(JSON.stringify(activated)).to.include(what);
      const tested = expectData<{ connected: boolean; error: string }>(await api.post(`${url}/test`));
      expect(tested.connected).to.equal(false);
      expect(tested.error).to.include(what);
      await rename(`${program}.later`, program);
      await eventually(async () =>
        expect(expectData<{ state: string }>(await api.get(url)).state).to.equal('connected'),
      );
    } finally {
      await Promise.all(processes.map(ended));
      await database.drop();
    }
  });

  it('says that `rustc` is missing when the copied programs are those of other sources', async () => {
    await writeFile(copy.at('dist/native/front.sources'), 'of another version');
    const { status, output } = copy.build();
    expect(status, output).to.equal(1);
    expect(output).to.match(/no `rustc` on the PATH/);
  });
});
