import { writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { ServiceConfig } from '../../../src/model/service-configs.js';
import { type PostgresBackend, startPostgresBackend } from '../../support/backends/postgres-tls.js';
import { type Certificates, makeCertificates } from '../../support/certificates.js';
import { eventually } from '../../support/eventually.js';
import { postgresService } from '../../support/native-service.js';
import { connectSql, execute, query, valueText } from '../../support/sql-calls.js';
import { type TempDir, tempDir } from '../../support/temp.js';

type Config = ServiceConfig<'postgres'>;

const ENCRYPTED = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';

describe('driver postgres: ssl_mode', () => {
  let backend: PostgresBackend;
  let folder: TempDir;
  let other: Certificates;

  before(async () => {
    backend = await startPostgresBackend();
    folder = await tempDir('certificates');
    other = await makeCertificates(folder.path, ['localhost']);
  });
  after(async () => {
    await backend?.remove();
    await folder?.remove();
  });

  /** Connects, and returns whether the connection is encrypted, or the error. */
  async function attempt(changes: Partial<Config>): Promise<string> {
    const config = { ...backend.config, host: 'localhost', ...changes };
    try {
      const { connection } = await connectSql(postgresService, config);
      const encrypted = await valueText(connection, ENCRYPTED);
      await connection.close();
      return encrypted === 'true' ? 'encrypted' : 'plain';
    } catch (thrown) {
      return String(thrown);
    }
  }
  const trusting = (ssl_mode: Config['ssl_mode'], pem = backend.certificates.ca.pem) => ({
    ssl_mode,
    ssl_root_cert: pem,
  });

  /** Makes the server read changed settings. */
  async function reconfigure(...statements: string[]): Promise<void> {
    const { connection } = await connectSql(postgresService, backend.config);
    for (const statement of statements) await execute(connection, statement);
    await query(connection, 'SELECT pg_reload_conf()');
    await connection.close();
  }

  it('a connection to PostgreSQL with ssl_mode disable is not encrypted', async () => {
    expect(await attempt({ ssl_mode: 'disable' })).to.equal('plain');
  });

  it('a connection with ssl_mode prefer is encrypted when PostgreSQL offers it', async () => {
    expect(await attempt({ ssl_mode: 'prefer' })).to.equal('encrypted');
  });

  it('a connection with ssl_mode require is encrypted with a certificate of any issuer', async () => {
    expect(await attempt({ ssl_mode: 'require' })).to.equal('encrypted');
    expect(await attempt({ ssl_mode: 'require', host: '127.0.0.1' })).to.equal('encrypted');
  });

  it('ssl_mode require checks the issuer of the certificate when one is given', async () => {
    expect(await attempt(trusting('require'))).to.equal('encrypted');
    expect(await attempt(trusting('require', other.ca.pem))).to.match(
      /certificate of localhost:\d+ was not accepted/,
    );
  });

  it('ssl_mode verify-ca accepts a certificate of a trusted authority for any name', async () => {
    expect(await attempt(trusting('verify-ca'))).to.equal('encrypted');
    expect(await attempt({ ...trusting('verify-ca'), host: '127.0.0.1' })).to.equal('encrypted');
  });

  it('ssl_mode verify-ca refuses a certificate of another authority', async () => {
    const message = /the certificate of localhost:\d+ was not accepted: .*(trusted|signed)/;
    expect(await attempt({ ssl_mode: 'verify-ca' })).to.match(message);
    expect(await attempt(trusting('verify-ca', other.ca.pem))).to.match(message);
  });

  it('ssl_mode verify-full also checks the name in the certificate', async () => {
    expect(await attempt(trusting('verify-full'))).to.equal('encrypted');
    expect(await attempt({ ssl_mode: 'verify-full' })).to.match(/was not accepted/);
    expect(await attempt({ ...trusting('verify-full'), host: '127.0.0.1' })).to.match(
      /issued for another host name/,
    );
  });

  it('reports a wrong user, password or database of PostgreSQL over TLS', async () => {
    const password = /^ServiceError: the server at .* did not accept the username or the password$/;
    expect(await attempt({ ssl_mode: 'require', password: 'wrong' })).to.match(password);
    expect(await attempt({ ssl_mode: 'require', username: 'nobody' })).to.match(password);
    expect(await attempt({ ssl_mode: 'require', password: null })).to.match(
      /asks for a password, and none is set/,
    );
    expect(await attempt({ ssl_mode: 'require', database: 'missing' })).to.match(
      /unknown database: .* "missing"/,
    );
  });

  describe('a server that does not offer TLS', () => {
    before(() => reconfigure('ALTER SYSTEM SET ssl = off'));
    after(() => reconfigure('ALTER SYSTEM RESET ssl'));

    it('a connection with ssl_mode prefer is plain when PostgreSQL does not offer TLS', async () => {
      await eventually(async () => expect(await attempt({ ssl_mode: 'prefer' })).to.equal('plain'));
    });

    it('ssl_mode require and the stricter ones refuse a server that does not offer TLS', async () => {
      for (const mode of ['require', 'verify-ca', 'verify-full'] as const) {
        expect(await attempt(trusting(mode))).to.match(/does not offer TLS, but ssl_mode is/);
      }
    });
  });

  describe('a server whose rules accept only plain connections', () => {
    before(async () => {
      const { connection } = await connectSql(postgresService, backend.config);
      const file: unknown = JSON.parse(await valueText(connection, "SELECT current_setting('hba_file')"));
      await connection.close();
      await writeFile(String(file), 'hostnossl all all all scram-sha-256\n');
      await reconfigure();
    });

    it('a connection with ssl_mode prefer is plain when the rules of PostgreSQL accept no other', async () => {
      await eventually(async () => expect(await attempt({ ssl_mode: 'prefer' })).to.equal('plain'));
    });

    it('ssl_mode require reports that the rules of PostgreSQL refuse an encrypted connection', async () => {
      expect(await attempt({ ssl_mode: 'require' })).to.match(/does not let it in from here/);
    });
  });
});
