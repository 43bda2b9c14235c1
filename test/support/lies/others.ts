/** MySQL, memcached, S3, FTP and SMTP. */
import type { Socket } from 'node:net';
import { endless, inTurn, type Lie, type Reply, thenZeros } from './lie.js';
import { liesOf } from './protocols.js';

/** What a server says first, and then this for each chunk that comes. */
export function greets(greeting: Buffer | string, ...answers: readonly Reply[]): (socket: Socket) => void {
  const rest = inTurn(...answers);
  return (socket) => {
    socket.write(greeting);
    rest(socket);
  };
}

/** https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html: length, number, content. */
export function packet(number: number, content: Buffer, length = content.length): Buffer {
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
export const MYSQL_OK = packet(2, Buffer.from([0, 0, 0, 2, 0, 0, 0]));
/** One column `v` of text, and a row of it. */
export const MYSQL_COLUMNS = Buffer.concat([
  packet(1, Buffer.from([1])),
  packet(2, Buffer.from('\x03def\0\0\0\x01v\x01v\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0', 'latin1')),
  packet(3, Buffer.from([0xfe, 0, 0, 2, 0])),
]);
export const MYSQL_ROW = packet(4, Buffer.from('\x05hello'));
/** Many, with the numbers that follow upon those of the columns, again and again. */
const MYSQL_ROWS = Buffer.concat(
  Array.from({ length: 4_096 }, (_, at) => packet((4 + at) & 0xff, Buffer.from('\x05hello'))),
);
const LARGEST_PACKET = packet(1, Buffer.alloc(0xffffff, 'a'), 0xffffff);

const MYSQL_LIES = liesOf('mysql', {
  'an end of rows of one byte': greets(MYSQL_HANDSHAKE, MYSQL_OK, packet(1, Buffer.from([0xfe]))),
  'a packet without bytes': greets(MYSQL_HANDSHAKE, MYSQL_OK, packet(1, Buffer.alloc(0))),
  'the largest packets for ever': greets(MYSQL_HANDSHAKE, MYSQL_OK, endless(LARGEST_PACKET, LARGEST_PACKET)),
  'rows without end': greets(MYSQL_HANDSHAKE, MYSQL_OK, endless(MYSQL_COLUMNS, MYSQL_ROWS)),
  'a file of this machine, asked for': greets(
    MYSQL_HANDSHAKE,
    MYSQL_OK,
    packet(1, Buffer.from('\xfb/etc/passwd', 'latin1')),
  ),
  'a handshake of zeros': (socket) => void socket.write(packet(0, Buffer.alloc(100))),
  'zeros for ever': (socket) => thenZeros(Buffer.alloc(0))(socket),
});

/** https://github.com/memcached/memcached/wiki/BinaryProtocolRevamped: 24 bytes, the length at 8. */
export function memcachedHeader(length: number): Buffer {
  const header = Buffer.alloc(24);
  header[0] = 0x81;
  header.writeUInt32BE(length, 8);
  return header;
}

const MEMCACHED_LIES = liesOf('memcached', {
  'an answer of 4 GiB': inTurn(thenZeros(memcachedHeader(0xffffffff))),
  'an answer whose key is longer than all of it': inTurn(Buffer.from('81000fff', 'hex').fill(0xff, 2)),
  'zeros for ever': inTurn(thenZeros(Buffer.alloc(0))),
});

const FTP_LIES = liesOf('ftp', {
  'a line that never ends': (socket) => thenZeros(Buffer.from('220 '))(socket),
  'a greeting that never ends': (socket) =>
    endless(Buffer.from('220-'), Buffer.from('a\r\n'.repeat(20_000)))(socket),
  'an answer that is none': greets('220 hello\r\n', Buffer.from('hello\r\n')),
  'answers nobody asked for': greets(
    '220 hello\r\n'.repeat(10_000),
    Buffer.from('230 yes\r\n'.repeat(10_000)),
  ),
});

const SFTP_LIES = liesOf('sftp', {
  'a line that never ends': (socket) => thenZeros(Buffer.from('SSH-2.0-'))(socket),
  'a packet of 4 GiB': (socket) => thenZeros(Buffer.from('SSH-2.0-x\r\n\xff\xff\xff\xff', 'latin1'))(socket),
  'a packet without padding': (socket) =>
    void socket.write(Buffer.from('SSH-2.0-x\r\n\0\0\0\x01\xff\x14', 'latin1')),
});

const EMAIL_LIES = liesOf('email', {
  'a line that never ends': (socket) => thenZeros(Buffer.from('220 '))(socket),
  'empty lines without end': (socket) =>
    endless(Buffer.from('220-'), Buffer.from('\r\n'.repeat(30_000)))(socket),
  'a greeting that never ends': (socket) =>
    endless(Buffer.from('220-'), Buffer.from('220-a\r\n'.repeat(20_000)))(socket),
  'an answer that is none': greets('220 hello\r\n', Buffer.from('hello\r\n')),
});

const ENTITIES = `<?xml version="1.0"?><!DOCTYPE a [${Array.from(
  { length: 20 },
  (_, at) => `<!ENTITY e${at + 1} "${`&e${at};`.repeat(10)}">`,
).join('')}]>`;
const xml = (status: number, body: string) =>
  Buffer.from(
    `HTTP/1.1 ${status} Such\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
const errorOf = (content: string) => xml(403, `${ENTITIES}<Error><Code>No</Code>${content}</Error>`);

/** Of any server that speaks HTTP, or does not. */
const HTTP_SERVERS = {
  'a head that never ends': inTurn(
    endless(Buffer.from('HTTP/1.1 200 OK\r\n'), Buffer.from('a: b\r\n'.repeat(10_000))),
  ),
  'a body that never ends': inTurn(thenZeros(Buffer.from('HTTP/1.1 200 OK\r\n\r\n<?xml'))),
  'a failure that never ends': inTurn(thenZeros(Buffer.from('HTTP/1.1 503 No\r\n\r\n'))),
  'more to come, for ever': inTurn(
    endless(Buffer.alloc(0), Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000))),
  ),
  'a chunk of 16 EiB': inTurn(
    thenZeros(Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n')),
  ),
  'no HTTP': inTurn(Buffer.from('220 hello\r\n')),
};

const HTTP_LIES = liesOf('http', HTTP_SERVERS);
const OBJSTORE_LIES = liesOf('objstore', {
  ...HTTP_SERVERS,
  'XML in XML for ever': inTurn(
    endless(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), Buffer.from('<a>'.repeat(20_000))),
  ),
  'an error that never ends': inTurn(thenZeros(Buffer.from('HTTP/1.1 403 No\r\n\r\n<Error>'))),
  'an error of XML in XML': inTurn(errorOf('<a>'.repeat(200_000))),
  'an error of entities of entities': inTurn(errorOf('<Message>&e20;</Message>')),
});

/** What is a bad list is a good object. */
const LISTS = liesOf(
  'objstore',
  {
    'entities of entities': inTurn(
      xml(200, `${ENTITIES}<ListBucketResult><Name>&e20;</Name></ListBucketResult>`),
    ),
  },
  { mayPass: true },
);

export const OTHER_LIES: readonly Lie[] = [
  ...MYSQL_LIES,
  ...MEMCACHED_LIES,
  ...FTP_LIES,
  ...SFTP_LIES,
  ...EMAIL_LIES,
  ...HTTP_LIES,
  ...OBJSTORE_LIES,
  ...LISTS,
];
