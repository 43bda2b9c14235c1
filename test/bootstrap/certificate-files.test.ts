import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { warnOfClosedCertificates } from '../../src/bootstrap/certificate-files.js';
import { HAS_UNTRUSTED_USERS } from '../../src/util/untrusted-users.js';
import { createTestLog } from '../support/log.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('files of certificates', () => {
  let folder: TempDir;
  before(async function () {
    if (!HAS_UNTRUSTED_USERS) this.skip();
    folder = await tempDir('certificates');
  });
  after(() => folder?.remove());

  /** The settings that a warning names. */
  async function warnedOf(environment: Record<string, string>): Promise<(string | undefined)[]> {
    const { log, lines } = createTestLog();
    await warnOfClosedCertificates(log, environment);
    return lines.map(({ msg }) => /of (\w+)$/.exec(String(msg))?.[1]);
  }

  it('warns of files of certificates that processes of services cannot read as other users', async () => {
    const [open, closed, below] = ['open.pem', 'closed.pem', 'closed/ca.pem'].map((name) =>
      join(folder.path, name),
    ) as [string, string, string];
    await mkdir(join(folder.path, 'closed'));
    for (const path of [open, closed, below]) {
      await writeFile(path, '');
      await chmod(path, 0o644);
    }
    expect(
      await warnedOf({ NODE_EXTRA_CA_CERTS: open, SSL_CERT_FILE: closed, SSL_CERT_DIR: below }),
    ).to.deep.equal([]);
    expect(await warnedOf({ SSL_CERT_DIR: `${folder.path}:${folder.path}/closed` })).to.deep.equal([]);
    await chmod(closed, 0o640);
    await chmod(join(folder.path, 'closed'), 0o700);
    expect(
      await warnedOf({ NODE_EXTRA_CA_CERTS: open, SSL_CERT_FILE: closed, SSL_CERT_DIR: below }),
    ).to.deep.equal(['SSL_CERT_FILE', 'SSL_CERT_DIR']);
    expect(await warnedOf({ NODE_EXTRA_CA_CERTS: join(folder.path, 'missing') })).to.deep.equal([
      'NODE_EXTRA_CA_CERTS',
    ]);
  });
});
