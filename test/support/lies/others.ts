/** MySQL, MongoDB, memcached, S3, FTP and SMTP. */
import type { Socket } from 'node:net';
import type { ServiceConfig, ServiceType } from '../../../src/model/service-configs.js';
import { endless, inTurn, type Lie, type Reply, thenZeros } from './lie.js';

const HOST = '127.0.0.1';
const KEY_CALL = { operation: 'get', args: { key: 'k' }, timeoutMs: 2_000 };

function lies<T extends ServiceType>(
  type: T,
  config: (port: number) => ServiceConfig<T>,
  call: Lie['call'],
  servers: Readonly<Record<string, (socket: Socket) => void>>,
): readonly Lie[] {
  return Object.entries(servers).map(([name, serve]) => ({
    name: `${type}: ${name}`,
    type,
    config: (port) => config(port),
    serve,
    ...(call && { call }),
  }));
}

/** What a server says first, and then this for each chunk that comes. */
function greets(greeting: Buffer | string, ...answers: readonly Reply[]): (socket: Socket) => void {
  const rest = inTurn(...answers);
  return (socket) => {
    socket.write(greeting);
    rest(socket);
  };
}

/** https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html: length, number, content. */
function packet(number: number, content: Buffer, length = content.length): Buffer {
  return Buffer.concat([Buffer.from([length & 0xff, (length >> 8) & 0xff, length >> 16, number]), content]);
}

/** HandshakeV10: version, connection id, 8 bytes of a challenge, capabilities, 13 more bytes, authentication plugin. */
export const MYSQL_HANDSHAKE = packet(
  0,
  Buffer.concat([
    Buffer.from('\x0a8.0.0\0\x01\0\0\0abcdefgh\0', 'latin1'),
    Buffer.from([0xff, 0xf7, 45, 2, 0, 0xff, 0x81, 21]),
    Buffer.alloc(10),
    Buffer.from('abcdefghijkl\0mysql_native_password\0', 'latin1'),
  ]),
);
const MYSQL_OK = packet(2, Buffer.from([0, 0, 0, 2, 0, 0, 0]));
const LARGEST_PACKET = packet(1, Buffer.alloc(0xffffff, 'a'), 0xffffff);

const MYSQL_LIES = lies(
  'mysql',
  (port) => ({ host: HOST, port, database: 'd', username: 'u', use_ssl: false, pool_size: 1 }),
  { operation: 'query', payload: '{"sql":"SELECT 1","params":[]}', timeoutMs: 2_000 },
  {
    'an end of rows of one byte': greets(MYSQL_HANDSHAKE, MYSQL_OK, packet(1, Buffer.from([0xfe]))),
    'a packet without bytes': greets(MYSQL_HANDSHAKE, MYSQL_OK, packet(1, Buffer.alloc(0))),
    'the largest packets for ever': greets(
      MYSQL_HANDSHAKE,
      MYSQL_OK,
      endless(LARGEST_PACKET, LARGEST_PACKET),
    ),
    'a handshake of zeros': (socket) => void socket.write(packet(0, Buffer.alloc(100))),
    'zeros for ever': (socket) => thenZeros(Buffer.alloc(0))(socket),
  },
);

const MONGODB_LIES = lies(
  'mongodb',
  (port) => ({ uri: `mongodb://${HOST}:${port}/`, database: 'd', pool_size: 1 }),
  undefined,
  {
    'sixteen zeros': inTurn(Buffer.alloc(16)),
    'a message of 2 GiB': inTurn(thenZeros(Buffer.from('ffffff7f', 'hex'))),
    'a message that is shorter than its header': inTurn(Buffer.from(`08000000${'0'.repeat(40)}`, 'hex')),
    'a message of negative length': inTurn(Buffer.from(`ffffffff${'0'.repeat(40)}`, 'hex')),
  },
);

/** https://github.com/memcached/memcached/wiki/BinaryProtocolRevamped: 24 bytes, the length at 8. */
function memcachedHeader(length: number): Buffer {
  const header = Buffer.alloc(24);
  header[0] = 0x81;
  header.writeUInt32BE(length, 8);
  return header;
}

const MEMCACHED_LIES = lies('memcached', (port) => ({ servers: [`${HOST}:${port}`] }), KEY_CALL, {
  'an answer of 4 GiB': inTurn(thenZeros(memcachedHeader(0xffffffff))),
  'an answer whose key is longer than all of it': inTurn(Buffer.from('81000fff', 'hex').fill(0xff, 2)),
  'zeros for ever': inTurn(thenZeros(Buffer.alloc(0))),
});

const FTP_LIES = lies(
  'ftp',
  (port) => ({ host: HOST, port, protocol: 'ftp', base_path: '/', timeout_seconds: 5, passive: true }),
  undefined,
  {
    'a line that never ends': (socket) => thenZeros(Buffer.from('220 '))(socket),
    'a greeting that never ends': (socket) =>
      endless(Buffer.from('220-'), Buffer.from('a\r\n'.repeat(20_000)))(socket),
    'an answer that is none': greets('220 hello\r\n', Buffer.from('hello\r\n')),
    'answers nobody asked for': greets(
      '220 hello\r\n'.repeat(10_000),
      Buffer.from('230 yes\r\n'.repeat(10_000)),
    ),
  },
);

const SFTP_LIES = lies(
  'ftp',
  (port) => ({
    host: HOST,
    port,
    protocol: 'sftp',
    username: 'u',
    password: 'p',
    base_path: '/',
    timeout_seconds: 5,
    passive: true,
  }),
  undefined,
  {
    'sftp: a line that never ends': (socket) => thenZeros(Buffer.from('SSH-2.0-'))(socket),
    'sftp: a packet of 4 GiB': (socket) =>
      thenZeros(Buffer.from('SSH-2.0-x\r\n\xff\xff\xff\xff', 'latin1'))(socket),
    'sftp: a packet without padding': (socket) =>
      void socket.write(Buffer.from('SSH-2.0-x\r\n\0\0\0\x01\xff\x14', 'latin1')),
  },
);

const EMAIL_LIES = lies(
  'email',
  (port) => ({ host: HOST, port, encryption: 'none', from_address: 'a@example.com' }),
  undefined,
  {
    'a line that never ends': (socket) => thenZeros(Buffer.from('220 '))(socket),
    'a greeting that never ends': (socket) =>
      endless(Buffer.from('220-'), Buffer.from('220-a\r\n'.repeat(20_000)))(socket),
    'an answer that is none': greets('220 hello\r\n', Buffer.from('hello\r\n')),
  },
);

const OBJSTORE_LIES = lies(
  'objstore',
  (port) => ({
    endpoint: `${HOST}:${port}`,
    access_key: 'a',
    secret_key: 's',
    bucket: 'files',
    use_ssl: false,
  }),
  KEY_CALL,
  {
    'a head that never ends': inTurn(
      endless(Buffer.from('HTTP/1.1 200 OK\r\n'), Buffer.from('a: b\r\n'.repeat(10_000))),
    ),
    'a body that never ends': inTurn(thenZeros(Buffer.from('HTTP/1.1 200 OK\r\n\r\n<?xml'))),
    'XML in XML for ever': inTurn(
      endless(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), Buffer.from('<a>'.repeat(20_000))),
    ),
    'entities of entities': inTurn(
      Buffer.from(
        `HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<?xml version="1.0"?><!DOCTYPE a [${Array.from(
          { length: 20 },
          (_, at) => `<!ENTITY e${at + 1} "${`&e${at};`.repeat(10)}">`,
        ).join('')}]><ListBucketResult><Name>&e20;</Name></ListBucketResult>`,
      ),
    ),
    'no HTTP': inTurn(Buffer.from('220 hello\r\n')),
  },
);

export const OTHER_LIES: readonly Lie[] = [
  ...MYSQL_LIES,
  ...MONGODB_LIES,
  ...MEMCACHED_LIES,
  ...FTP_LIES,
  ...SFTP_LIES,
  ...EMAIL_LIES,
  ...OBJSTORE_LIES,
];
