/** File servers that say what a test wants: FTP, and SFTP in a real SSH session. */
import { generateKeyPairSync } from 'node:crypto';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import ssh2, { type ServerChannel } from 'ssh2';

/** What a server sends over a data connection of FTP. */
type Transfer = (data: Socket) => void;

/** By command; others are answered politely. */
export interface FtpWords {
  readonly LIST?: Transfer;
  readonly RETR?: Transfer;
  /** The answer instead of an address. */
  readonly EPSV?: Buffer;
}

const FTP_REPLIES: Readonly<Record<string, string>> = {
  USER: '230 come in',
  PWD: '257 "/"',
  CWD: '250 here you are',
};

/** Speaks FTP, up to what it transfers. */
export function ftpServer(words: FtpWords): (socket: Socket) => void {
  return (socket) => {
    let listener: Server | undefined;
    let connected: Promise<Socket> | undefined;
    socket.on('close', () => listener?.close());
    socket.write('220 hello\r\n');
    socket.on('data', (chunk) => {
      for (const line of String(chunk).split('\r\n').filter(Boolean)) {
        const [command = ''] = line.split(' ');
        const transfer = command === 'LIST' || command === 'RETR' ? words[command] : undefined;
        if (command === 'EPSV' && words.EPSV) {
          socket.write(words.EPSV);
        } else if (command === 'EPSV') {
          listener?.close();
          const opened = createServer();
          listener = opened;
          connected = new Promise((resolve) => {
            opened.once('connection', (data) => {
              socket.on('close', () => data.destroy());
              resolve(data.on('error', () => undefined));
            });
          });
          opened.listen(0, '127.0.0.1', () => {
            socket.write(`229 there (|||${(opened.address() as AddressInfo).port}|)\r\n`);
          });
        } else if (transfer) {
          socket.write('150 it comes\r\n');
          void connected?.then(transfer);
        } else {
          socket.write(`${FTP_REPLIES[command] ?? '200 yes'}\r\n`);
        }
      }
    });
  };
}

/** https://datatracker.ietf.org/doc/html/draft-ietf-secsh-filexfer-02 */
export const SFTP = {
  VERSION: 2,
  OPENDIR: 11,
  READDIR: 12,
  READ: 5,
  STAT: 17,
  HANDLE: 102,
  DATA: 103,
  NAME: 104,
  ATTRS: 105,
} as const;
const INIT = 1;
const REALPATH = 16;
const LSTAT = 7;
const OPEN = 3;
const STATUS = 101;

export function uint32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, 4 * at);
  return bytes;
}

export const sftpString = (text: string) => Buffer.concat([uint32(text.length), Buffer.from(text)]);

export function sftpPacket(type: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat([Buffer.from([type]), ...content]);
  return Buffer.concat([uint32(body.length), body]);
}

const SIZE_AND_MODE = 5;
/** Attributes: size, and mode. */
const attributes = (size: number, mode: number) => uint32(SIZE_AND_MODE, 0, size, mode);
const FOLDER = attributes(0, 0o40755);
const FILE = attributes(10, 0o100644);

/** One entry of a folder. */
export const sftpName = (name: string) => [sftpString(name), sftpString(`-rw-r--r-- 1 ${name}`), FILE];

/** The answer to a request, by its type; others are answered politely. */
export type SftpWords = { readonly [type: number]: (id: Buffer) => Buffer };

/** `/` is a folder, `/file` a file. */
function politely(type: number, id: Buffer, request: Buffer): Buffer {
  if (type === INIT) return sftpPacket(SFTP.VERSION, uint32(3));
  if (type === REALPATH) return sftpPacket(SFTP.NAME, id, uint32(1), ...sftpName('/'));
  if (type === SFTP.STAT || type === LSTAT) {
    return sftpPacket(SFTP.ATTRS, id, request.includes('file') ? FILE : FOLDER);
  }
  if (type === OPEN || type === SFTP.OPENDIR) return sftpPacket(SFTP.HANDLE, id, sftpString('h'));
  return sftpPacket(STATUS, id, uint32(0), sftpString('fine'), sftpString(''));
}

/** From Node: one of 256 ed25519 keys that ssh2 1.17 generates cannot be read by ssh2 itself. */
const HOST_KEY = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  privateKeyEncoding: { type: 'sec1', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
}).privateKey;

/** Speaks SSH and SFTP, up to these answers. */
export function sftpServer(words: SftpWords): (socket: Socket) => void {
  const server = new ssh2.Server({ hostKeys: [HOST_KEY] }, (client) => {
    client.on('error', () => undefined);
    client.on('authentication', (context) => context.accept());
    client.on('session', (accept) => {
      accept().on('subsystem', (acceptChannel) => answerRequests(acceptChannel(), words));
    });
  });
  return (socket) => server.injectSocket(socket.setNoDelay());
}

function answerRequests(channel: ServerChannel, words: SftpWords): void {
  let received: Buffer = Buffer.alloc(0);
  channel.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 4 && received.length >= 4 + received.readUInt32BE()) {
      const end = 4 + received.readUInt32BE();
      const [type = 0, id, request] = [received[4], received.subarray(5, 9), received.subarray(9, end)];
      channel.write(words[type]?.(id) ?? politely(type, id, request));
      received = received.subarray(end);
    }
  });
}
