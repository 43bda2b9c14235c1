import { expect } from 'chai';
import { mysqlDriver } from '../../../src/actors/drivers/mysql/driver.js';
import { type MariadbBackend, startMariadbBackend } from '../../support/backends/mariadb.js';
import { makeCertificates } from '../../support/certificates.js';
import { connectSql, query } from '../../support/sql-calls.js';
import { tempDir } from '../../support/temp.js';

describe('driver mysql: TLS', () => {
  let backend: MariadbBackend;

  before(async () => {
    backend = await startMariadbBackend();
  });
  after(() => backend?.remove());

  async function attempt(changes: Partial<MariadbBackend['config']>): Promise<string> {
    try {
      const { connection } = await connectSql(mysqlDriver, {
        ...backend.config,
        host: 'localhost',
        ...changes,
      });
      const { rows } = await query(connection, "SHOW SESSION STATUS LIKE 'Ssl_cipher'");
      await connection.close();
      return rows[0]?.[1] === '' ? 'plain' : 'encrypted';
    } catch (thrown) {
      return String(thrown);
    }
  }

  it('connects to MySQL over TLS when configured so', async () => {
    expect(await attempt({})).to.equal('plain');
    expect(await attempt({ use_ssl: true, ssl_verify: false })).to.equal('encrypted');
    expect(await attempt({ use_ssl: true, ssl_verify: false, host: '127.0.0.1' })).to.equal('encrypted');
  });

  it('verifies the certificate of MySQL by default', async () => {
    const refused = /the certificate of localhost:\d+ was not accepted/;
    expect(await attempt({ use_ssl: true })).to.match(refused);
    expect(await attempt({ use_ssl: true, ssl_verify: true, ssl_root_cert: null })).to.match(refused);
  });

  it('verifies the certificate of MySQL with the authority of the config', async () => {
    const { pem } = backend.certificates.ca;
    const folder = await tempDir('certificates');
    const other = await makeCertificates(folder.path, ['localhost']);
    await folder.remove();
    expect(await attempt({ use_ssl: true, ssl_root_cert: pem })).to.equal('encrypted');
    expect(await attempt({ use_ssl: true, ssl_root_cert: other.ca.pem })).to.match(
      /the certificate of localhost:\d+ was not accepted/,
    );
    expect(await attempt({ use_ssl: true, ssl_root_cert: pem, host: '127.0.0.1' })).to.match(
      /the certificate of 127.0.0.1:\d+ was not accepted: it was issued for another host name/,
    );
  });

  it('reports a wrong user, password or database of MySQL over TLS', async () => {
    const trusting = { use_ssl: true, ssl_root_cert: backend.certificates.ca.pem };
    const password = /the server at .* did not accept the username or the password$/;
    expect(await attempt({ ...trusting, password: 'wrong' })).to.match(password);
    expect(await attempt({ ...trusting, username: 'nobody' })).to.match(password);
    expect(await attempt({ ...trusting, password: null })).to.match(password);
    expect(await attempt({ ...trusting, database: 'missing' })).to.match(/unknown database: .* "missing"/);
  });

  it('reports a server of MySQL that does not offer TLS', async () => {
    const plain = await startMariadbBackend(false);
    try {
      expect(await attempt({ ...plain.config, use_ssl: true })).to.match(
        /does not offer TLS, but use_ssl is set/,
      );
    } finally {
      await plain.remove();
    }
  });
});
