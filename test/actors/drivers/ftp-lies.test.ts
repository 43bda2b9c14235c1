/** File servers that send more than they have said, or without end. */
import { ftpDriver } from '../../../src/actors/drivers/ftp/driver.js';
import { parseServiceConfig } from '../../../src/model/service-configs.js';
import { openCallable, pendingCall } from '../../support/callable-connection.js';
import { expectServiceError } from '../../support/driver-calls.js';
import {
  ftpServer,
  SFTP,
  sftpName,
  sftpPacket,
  sftpServer,
  sftpString,
  uint32,
} from '../../support/lies/file-servers.js';
import { endless, startLyingServer } from '../../support/lies/lie.js';

const ANSWER_BYTES = 1024 ** 2;
const NOTHING = Buffer.alloc(0);

const SERVERS = {
  ftp: ftpServer({
    LIST: endless(NOTHING, Buffer.from('-rw-r--r-- 1 a a 5 Jan 1 2026 name\r\n'.repeat(1_000))),
    RETR: endless(NOTHING, Buffer.alloc(64 * 1024)),
  }),
  sftp: sftpServer({
    [SFTP.READDIR]: (id) =>
      sftpPacket(SFTP.NAME, id, uint32(100), ...Array.from({ length: 100 }, () => sftpName('name')).flat()),
    [SFTP.READ]: (id) => sftpPacket(SFTP.DATA, id, sftpString('a'.repeat(16_000))),
  }),
} as const;

for (const [protocol, serve] of Object.entries(SERVERS)) {
  describe(`driver ftp: an ${protocol} server without end`, () => {
    for (const [operation, what] of [
      ['get', 'file'],
      ['list', 'list'],
    ] as const) {
      it(`fails a ${operation} of ${protocol} without end at the size of an answer; other calls are answered`, async () => {
        const server = await startLyingServer({ serve });
        const { port } = server;
        const config = parseServiceConfig('ftp', {
          host: '127.0.0.1',
          port,
          protocol,
          username: 'u',
          password: 'p',
        });
        const connection = await openCallable(ftpDriver, config, { answerBytes: ANSWER_BYTES });
        try {
          const call = pendingCall(operation, { path: operation === 'get' ? 'file' : '' });
          const message = new RegExp(`the ${what} is larger than the 1048576 bytes .*SERVICE_ANSWER_MB`);
          await expectServiceError(connection.call(call), 'invalid', message);
          await connection.test();
        } finally {
          await connection.close();
          await server.close();
        }
      });
    }
  });
}
