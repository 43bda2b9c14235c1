import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { SqliteFolders } from '../../../src/model/sqlite-folders.js';
import { nativeService } from '../../support/native-service.js';
import { connectSql, execute } from '../../support/sql-calls.js';
import { type TempDir, tempDir } from '../../support/temp.js';

describe('driver sqlite: the file', () => {
  let folder: TempDir;
  let path: string;
  let inside: string;
  let other: string;

  before(async () => {
    folder = await tempDir('sqlite');
    path = join(folder.path, 'main.db');
    inside = join(folder.path, 'inside');
    other = join(folder.path, 'other');
    for (const path of [inside, other]) await mkdir(path);
    expect(await attempt(path)).to.equal('opened');
  });
  after(() => folder?.remove());

  /** Connects and returns the error message, or that it worked. */
  async function attempt(
    path: string,
    options: { create?: boolean; sqliteFolders?: SqliteFolders } = {},
  ): Promise<string> {
    const { create = true, sqliteFolders } = options;
    try {
      const service = nativeService('sqlite', { sqliteFolders });
      const { connection } = await connectSql(service, { path, create_if_missing: create });
      await execute(connection, 'CREATE TABLE IF NOT EXISTS t (a)');
      await connection.close();
      return 'opened';
    } catch (thrown) {
      return String(thrown);
    }
  }

  it('creates the file of an sqlite service when it is missing, unless disabled', async () => {
    const path = join(folder.path, 'new.db');
    expect(await attempt(path, { create: false })).to.match(
      /does not exist, and none is made: .* create_if_missing is false/,
    );
    expect(existsSync(path)).to.equal(false);
    expect(await attempt(path)).to.equal('opened');
    expect(await attempt(path, { create: false })).to.equal('opened');
  });

  it('the file of an sqlite service is complete without its WAL when the connection is closed', async () => {
    const wal = await stat(join(folder.path, 'new.db-wal')).catch(() => undefined);
    expect(wal?.size ?? 0).to.equal(0);
  });

  it('refuses a file of an sqlite service in a folder that does not exist', async () => {
    expect(await attempt(join(folder.path, 'missing', 'a.db'))).to.match(
      /the folder .*missing does not exist/,
    );
    expect(await attempt(join(path, 'a.db'))).to.match(/is not a file|does not exist/);
  });

  it('refuses a file of an sqlite service that is not a file or not a database', async () => {
    expect(await attempt(inside)).to.match(/is not a file/);
    const noDatabase = join(folder.path, 'text');
    await writeFile(noDatabase, randomBytes(4_096));
    expect(await attempt(noDatabase)).to.match(/cannot be opened: file is not a database/);
    for (const path of [':memory:', 'file:x.db', ' a.db'])
      expect(await attempt(path)).to.match(/is not the path/);
  });

  it('refuses a file outside of the folders for databases, also through symbolic links', async () => {
    const options = { sqliteFolders: [inside, other] as const };
    expect(await attempt(join(inside, 'a.db'), options)).to.equal('opened');
    expect(await attempt('relative.db', options)).to.equal('opened');
    expect(existsSync(join(inside, 'relative.db'))).to.equal(true);
    expect(await attempt(join(other, 'a.db'), options)).to.equal('opened');
    await mkdir(join(inside, 'sub'));
    expect(await attempt('sub/..a.db', options)).to.equal('opened');
    for (const outside of [path, '../a.db', 'sub/../../a.db', join(inside, '..', 'a.db')]) {
      expect(await attempt(outside, options), outside).to.match(/is outside of/);
    }
    await symlink(folder.path, join(inside, 'way-out'));
    expect(await attempt('way-out/a.db', options)).to.match(/is outside of/);
    await symlink(path, join(inside, 'link.db'));
    expect(await attempt('link.db', options)).to.match(/is outside of/);
    await symlink(join(folder.path, 'nothing.db'), join(inside, 'dangling.db'));
    expect(await attempt('dangling.db', options)).to.match(/symbolic link to nothing/);
    expect(existsSync(join(folder.path, 'a.db'))).to.equal(false);
  });
});
