/** What servers of files transfer. */
import { ftpServer, SFTP, sftpName, sftpPacket, sftpServer, sftpString, uint32 } from './file-servers.js';
import { endless, type Lie } from './lie.js';
import { liesOf } from './protocols.js';

const GET = { call: { operation: 'get', args: { path: 'file' }, timeoutMs: 2_000 } };
const NOTHING = Buffer.alloc(0);
const NAMES = Array.from({ length: 100 }, () => sftpName('a'.repeat(200))).flat();

export const FILE_SERVER_LIES: readonly Lie[] = [
  ...liesOf('ftp', {
    'a list without end': ftpServer({
      LIST: endless(NOTHING, Buffer.from('-rw-r--r-- 1 a a 5 Jan 1 2026 name\r\n'.repeat(1_000))),
    }),
    'a line of a list without end': ftpServer({ LIST: endless(NOTHING, Buffer.alloc(65_536, 'a')) }),
  }),
  ...liesOf(
    'ftp',
    { 'a file without end': ftpServer({ RETR: endless(NOTHING, Buffer.alloc(65_536)) }) },
    GET,
  ),
  ...liesOf('sftp', {
    'a list without end': sftpServer({
      [SFTP.READDIR]: (id) => sftpPacket(SFTP.NAME, id, uint32(100), ...NAMES),
    }),
    'a list of nothing without end': sftpServer({
      [SFTP.READDIR]: (id) => sftpPacket(SFTP.NAME, id, uint32(0)),
    }),
    'a list of 4294967295 names': sftpServer({
      [SFTP.READDIR]: (id) => sftpPacket(SFTP.NAME, id, uint32(-1), ...NAMES),
    }),
    'a packet of negative length': sftpServer({ [SFTP.READDIR]: () => uint32(-1, -1) }),
  }),
  ...liesOf(
    'sftp',
    {
      'a file without end': sftpServer({
        [SFTP.READ]: (id) => sftpPacket(SFTP.DATA, id, sftpString('a'.repeat(16_000))),
      }),
    },
    GET,
  ),
];
