import { expect } from 'chai';
import { type Abortable, AbortSource } from '../../../src/actors/driver-call.js';
import { openFtpSession } from '../../../src/actors/drivers/ftp/ftp.js';
import { type FileSession, SessionPool } from '../../../src/actors/drivers/ftp/session.js';
import { openSftpSession } from '../../../src/actors/drivers/ftp/sftp.js';
import { startFtpBackend } from '../../support/backends/ftp.js';
import { startOpenSsh } from '../../support/backends/sftp.js';
import { expectServiceError } from '../../support/driver-calls.js';
import { startStallingProxy } from '../../support/stalling-proxy.js';

for (const [title, start, openSession] of [
  ['ftp', startFtpBackend, openFtpSession],
  ['sftp', startOpenSsh, openSftpSession],
] as const) {
  describe(`pool of ${title} sessions`, () => {
    it(`closes an idle ${title} session that does not answer when the call is aborted`, async () => {
      const backend = await start();
      const proxy = await startStallingProxy(Number(backend.config.port));
      const config = { ...backend.config, port: proxy.port, timeout_seconds: 300 };
      const opened: FileSession[] = [];
      // Every idle session is checked.
      const pool = new SessionPool(async (opening) => {
        const session = await openSession(config, opening, 1024 ** 2);
        opened.push(session);
        return session;
      }, 0);
      const check = (call: Abortable) => pool.use((session) => session.check(), call);
      try {
        await check(new AbortSource());
        await check(new AbortSource());
        expect(opened).to.have.length(1);
        proxy.stall();
        const abort = new AbortSource();
        const failing = expectServiceError(check(abort), 'unavailable', /./);
        abort.abort();
        await failing;
        expect(opened.filter(({ isOpen }) => isOpen)).to.deep.equal([]);
      } finally {
        pool.close();
        await proxy.close();
        await backend.remove();
      }
    });
  });
}
