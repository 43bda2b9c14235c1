import { expect } from 'chai';
import { openFtpSession } from '../../../src/actors/drivers/ftp-plain.js';
import { SessionPool } from '../../../src/actors/drivers/ftp-pool.js';
import type { FileSession } from '../../../src/actors/drivers/ftp-session.js';
import { openSftpSession } from '../../../src/actors/drivers/ftp-sftp.js';
import { startFtpBackend } from '../../support/backends/ftp.js';
import { startOpenSsh } from '../../support/backends/sftp.js';
import { expectServiceError } from '../../support/driver-calls.js';
import { startStallingProxy } from '../../support/stalling-proxy.js';

for (const [title, start, openSession] of [
  ['ftp', startFtpBackend, openFtpSession],
  ['sftp', startOpenSsh, openSftpSession],
] as const) {
  describe(`pool of ${title} sessions`, () => {
    it('gives up a session that rested and does not answer together with the call', async () => {
      const backend = await start();
      const proxy = await startStallingProxy(Number(backend.config.port));
      const config = { ...backend.config, port: proxy.port, timeout_seconds: 300 };
      const opened: FileSession[] = [];
      // Every session has rested for too long.
      const pool = new SessionPool(async (signal) => {
        const session = await openSession(config, signal);
        opened.push(session);
        return session;
      }, 0);
      const check = (signal: AbortSignal) => pool.use((session) => session.check(), signal);
      try {
        await check(new AbortController().signal);
        await check(new AbortController().signal);
        expect(opened).to.have.length(1);
        proxy.stall();
        const abort = new AbortController();
        const failing = expectServiceError(check(abort.signal), 'unavailable', /./);
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
