/** `npm run user`: the first admin, and lost passwords, for whoever has the machine. */
import { spawn } from 'node:child_process';
import { expect } from 'chai';
import { ADMIN, PASSWORD, signIn } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';

const COMMAND = 'dist/src/processes/user.js';

describe('npm run user', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi({ config: { HOST: '127.0.0.1' } });
  });
  afterEach(() => api.close());

  /** Runs the command. @param password its standard input */
  const run = (args: readonly string[], password = `${PASSWORD}\n`) =>
    new Promise<{ readonly code: number | null; readonly output: string }>((resolve, reject) => {
      const env = { ...process.env, DATABASE_URL: api.databaseUrl, DATA_DIR: api.config.DATA_DIR };
      const child = spawn(process.execPath, [COMMAND, ...args], { env });
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => (output += text));
      child.once('error', reject);
      child.once('close', (code) => resolve({ code, output }));
      child.stdin.end(password);
    });

  it('creates the first admin by npm run user, which closes an open API', async () => {
    expectData(await api.get('/api/domains'));
    expect(await run(['create-admin', ADMIN.toUpperCase()])).to.deep.equal({
      code: 0,
      output: `The admin ${ADMIN} is made.\n`,
    });
    expectFailure(await api.get('/api/domains'), 'unauthorized');
    const headers = await signIn(api, ADMIN);
    const me = expectData<{ user: { role: string } }>(await api.get('/api/session', { headers }));
    expect(me.user.role).to.equal('admin');
    const { code, output } = await run(['create-admin', ADMIN]);
    expect([code, output]).to.deep.equal([1, 'Another user has this email\n']);
  });

  it('resets a lost password by npm run user, ends the sessions, and records it in the audit', async () => {
    await run(['create-admin', ADMIN]);
    const before = { headers: await signIn(api, ADMIN) };
    const { code, output } = await run(['reset-password', ADMIN], 'another password\n');
    expect([code, output]).to.deep.equal([0, 'The password is set.\n']);
    expectFailure(await api.get('/api/domains', before), 'unauthorized');
    expectFailure(await api.post('/api/session', { email: ADMIN, password: PASSWORD }), 'login_failed');
    const headers = await signIn(api, ADMIN, 'another password');
    const rows = expectData<{ action: string }[]>(await api.get('/api/audit?object_kind=user', { headers }));
    expect(rows.map(({ action }) => action)).to.include.members(['create-admin', 'reset-password']);
    expect(JSON.stringify(rows)).not.to.include('another password');
  });

  it('refuses invalid emails, passwords and commands of npm run user, and changes nothing', async () => {
    for (const [args, password, message] of [
      [['create-admin', 'a b@c.test'], PASSWORD, /^EMAIL must be an e-mail address/],
      [['create-admin', 'nobody'], PASSWORD, /^EMAIL must be an e-mail address/],
      [['create-admin', ADMIN], 'elevenchars', /12 characters or more/],
      [['create-admin', ADMIN], '', /12 characters or more; standard input has 0/],
      [['create-admin', ADMIN], 'x'.repeat(1_025), /at most 1024 characters/],
      [['reset-password', ADMIN], PASSWORD, /^There is no user root@example\.test/],
      [['create-admin'], PASSWORD, /^Usage: /],
      [['make-admin', ADMIN], PASSWORD, /^Usage: /],
    ] as const) {
      const { code, output } = await run(args, password);
      expect(code, output).to.be.oneOf([1, 2]);
      expect(output).to.match(message);
    }
    expectData(await api.get('/api/domains'));
  });
});
