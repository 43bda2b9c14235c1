/**
 * Every length in the messages that libraries read first, at 0, -1, its maximum, and one more or less than it is. A
 * server tells one of them on each connection.
 */
import type { Socket } from 'node:net';
import { ftpServer, SFTP, sftpName, sftpPacket, sftpServer, sftpString, uint32 } from './file-servers.js';
import { inTurn, type Lie } from './lie.js';
import { MONGODB_WELCOME, mongodbAnswer, mongodbServer } from './mongodb.js';
import {
  greets,
  MYSQL_COLUMNS,
  MYSQL_HANDSHAKE,
  MYSQL_OK,
  MYSQL_ROW,
  memcachedHeader,
  packet,
} from './others.js';
import { COLUMNS, REFUSAL, RESULT, WELCOME } from './postgres.js';
import { liesOf, type ProtocolName } from './protocols.js';
import { PONG } from './redis.js';

/** Where a number is in a message. */
interface Field {
  readonly message: Buffer;
  readonly at: number;
  readonly bytes: number;
  readonly isLittleEndian?: boolean;
}

/** The message with other numbers there. */
function damaged({ message, at, bytes, isLittleEndian = false }: Field): Buffer[] {
  const places = Array.from({ length: bytes }, (_, i) => (isLittleEndian ? at + i : at + bytes - 1 - i));
  const honest = places.reduce((sum, place, i) => sum + (BigInt(message[place] ?? 0) << BigInt(8 * i)), 0n);
  const largest = (1n << BigInt(8 * bytes)) - 1n;
  return [0n, largest, largest >> 1n, (largest >> 1n) + 1n, honest + 1n, honest - 1n].map((value) => {
    const copy = Buffer.from(message);
    for (const [i, place] of places.entries()) copy[place] = Number((value >> BigInt(8 * i)) & 0xffn);
    return copy;
  });
}

/** The same for a number that is written in a text, where `N` stands for it. */
function written(text: string, honest: number): Buffer[] {
  const largest = ['2147483647', '4294967295', '9223372036854775807', '99999999999999999999'];
  const numbers = ['0', '-1', '-2', '', ...largest, honest + 1, honest - 1];
  return numbers.map((number) => Buffer.from(text.replace('N', String(number))));
}

type Serve = (answer: Buffer) => (socket: Socket) => void;

function lies(name: ProtocolName, what: string, answers: readonly Buffer[], serve: Serve): readonly Lie[] {
  let connections = 0;
  const tell = (socket: Socket) => serve(answers[connections++ % answers.length] as Buffer)(socket);
  return liesOf(name, { [what]: tell }, { mayPass: true, tests: answers.length + 1 });
}

const joined = (...parts: readonly Buffer[]) => Buffer.concat(parts);

function postgresLies(): Lie[] {
  const columns = RESULT.indexOf(COLUMNS);
  const row = columns + COLUMNS.length;
  const end = RESULT.indexOf('C\0', row);
  const welcome = {
    'length of the request for a password': [1, 4],
    'kind of authentication': [5, 4],
    'length of a setting': [WELCOME.indexOf('S\0') + 1, 4],
    'length of the key': [WELCOME.indexOf('K\0') + 1, 4],
  } as const;
  const result = {
    'length of a description': [columns + 1, 4],
    'number of columns': [columns + 5, 2],
    'length of a row': [row + 1, 4],
    'number of values': [row + 5, 2],
    'length of a value': [row + 7, 4],
    'length of the end': [end + 1, 4],
  } as const;
  return [
    ...Object.entries(welcome).flatMap(([what, [at, bytes]]) =>
      lies('postgres', what, damaged({ message: WELCOME, at, bytes }), (answer) => inTurn(answer, RESULT)),
    ),
    ...Object.entries(result).flatMap(([what, [at, bytes]]) =>
      lies('postgres', what, damaged({ message: RESULT, at, bytes }), (answer) => inTurn(WELCOME, answer)),
    ),
    ...lies('postgres', 'length of an error', damaged({ message: REFUSAL, at: 1, bytes: 4 }), (answer) =>
      inTurn(WELCOME, answer),
    ),
  ];
}

function mysqlLies(): Lie[] {
  const later: Serve = (answer) => greets(MYSQL_HANDSHAKE, MYSQL_OK, answer);
  const number = (content: Buffer) => packet(1, content);
  const eof = packet(5, Buffer.from([0xfe, 0, 0, 2, 0]));
  const result = joined(MYSQL_COLUMNS, MYSQL_ROW, eof);
  const row = (content: Buffer) => joined(MYSQL_COLUMNS, packet(4, content));
  const definition = 5;
  return [
    ...lies(
      'mysql',
      'length of the handshake',
      damaged({ message: MYSQL_HANDSHAKE, at: 0, bytes: 3, isLittleEndian: true }),
      (answer) => greets(answer, MYSQL_OK, MYSQL_OK),
    ),
    ...lies(
      'mysql',
      'length of the challenge',
      damaged({ message: MYSQL_HANDSHAKE, at: 31, bytes: 1 }),
      (answer) => greets(answer, MYSQL_OK, MYSQL_OK),
    ),
    ...lies(
      'mysql',
      'length of the answer to a login',
      damaged({ message: MYSQL_OK, at: 0, bytes: 3, isLittleEndian: true }),
      (answer) => greets(MYSQL_HANDSHAKE, answer, MYSQL_OK),
    ),
    ...lies(
      'mysql',
      'length of a result',
      damaged({ message: result, at: 0, bytes: 3, isLittleEndian: true }),
      later,
    ),
    ...lies('mysql', 'number of columns', damaged({ message: result, at: 4, bytes: 1 }), later),
    ...lies(
      'mysql',
      'number of columns, of 8 bytes',
      damaged({
        message: number(Buffer.from('fe0100000000000000', 'hex')),
        at: 5,
        bytes: 8,
        isLittleEndian: true,
      }),
      later,
    ),
    ...lies(
      'mysql',
      'length of a column',
      damaged({ message: result, at: definition, bytes: 3, isLittleEndian: true }),
      later,
    ),
    ...lies(
      'mysql',
      'length of the catalog of a column',
      damaged({ message: result, at: definition + 4, bytes: 1 }),
      later,
    ),
    ...lies(
      'mysql',
      'length of a row',
      damaged({ message: result, at: MYSQL_COLUMNS.length, bytes: 3, isLittleEndian: true }),
      later,
    ),
    ...lies(
      'mysql',
      'length of a value',
      damaged({ message: result, at: MYSQL_COLUMNS.length + 4, bytes: 1 }),
      later,
    ),
    ...lies(
      'mysql',
      'length of a value, of 8 bytes',
      damaged({
        message: row(Buffer.from(`fe0500000000000000${'61'.repeat(5)}`, 'hex')),
        at: MYSQL_COLUMNS.length + 5,
        bytes: 8,
        isLittleEndian: true,
      }),
      later,
    ),
  ];
}

function redisLies(): Lie[] {
  const texts: Readonly<Record<string, [string, number]>> = {
    'length of a text': ['$N\r\nhello\r\n', 5],
    'number of elements': ['*N\r\n$1\r\na\r\n$1\r\nb\r\n', 2],
    'length of a text in an array': ['*2\r\n$N\r\na\r\n$1\r\nb\r\n', 1],
    'a number': [':N\r\n', 1],
  };
  return Object.entries(texts).flatMap(([what, [text, honest]]) => [
    ...lies('redis', what, written(text, honest), inTurn),
    ...lies('redis', `${what}, later`, written(text, honest), (answer) => inTurn(PONG, PONG, PONG, answer)),
  ]);
}

function mongodbLies(): Lie[] {
  const document = { ...MONGODB_WELCOME, text: 'hello', list: [1, 2], bytes: Buffer.from('hello') };
  const message = mongodbAnswer(document);
  const after = (name: string) => message.indexOf(`${name}\0`) + name.length + 1;
  const fields = {
    'length of the message': 0,
    'length of the document': 21,
    'length of a text': after('text'),
    'length of a list': after('list'),
    'length of bytes': after('bytes'),
    'length of a document in it': after('cursor'),
  };
  return Object.entries(fields).flatMap(([what, at]) =>
    lies('mongodb', what, damaged({ message, at, bytes: 4, isLittleEndian: true }), (answer) =>
      mongodbServer(() => answer),
    ),
  );
}

/** Repeats the operation and the number of a request. */
function memcachedServer(answer: Buffer): (socket: Socket) => void {
  return (socket) => {
    socket.on('data', (request) => {
      const reply = Buffer.from(answer);
      request.copy(reply, 1, 1, 2);
      request.copy(reply, 12, 12, 16);
      socket.write(reply);
    });
  };
}

function memcachedLies(): Lie[] {
  const message = joined(memcachedHeader(5), Buffer.from('1.6.9'));
  const fields = {
    'length of the key': [2, 2],
    'length of the extras': [4, 1],
    'length of all': [8, 4],
  } as const;
  return Object.entries(fields).flatMap(([what, [at, bytes]]) =>
    lies('memcached', what, damaged({ message, at, bytes }), memcachedServer),
  );
}

function sshLies(): Lie[] {
  const hello = Buffer.from('SSH-2.0-hello\r\n');
  const lists = [
    'curve25519-sha256',
    'ssh-ed25519',
    'aes128-ctr',
    'aes128-ctr',
    'hmac-sha2-256',
    'hmac-sha2-256',
    'none',
    'none',
    '',
    '',
  ];
  const content = joined(Buffer.from([20]), Buffer.alloc(16), ...lists.map(sftpString), Buffer.alloc(5));
  const padding = 16 - ((5 + content.length) % 8);
  const message = joined(
    hello,
    uint32(1 + content.length + padding),
    Buffer.from([padding]),
    content,
    Buffer.alloc(padding),
  );
  const start = hello.length;
  const fields = {
    'length of a packet of SSH': [start, 4],
    'length of padding': [start + 4, 1],
    'length of a list of algorithms': [start + 22, 4],
  } as const;
  return Object.entries(fields).flatMap(([what, [at, bytes]]) =>
    lies('sftp', what, damaged({ message, at, bytes }), (answer) => greets(answer, Buffer.alloc(0))),
  );
}

function sftpLies(): Lie[] {
  const id = uint32(0);
  const list = sftpPacket(SFTP.NAME, id, uint32(1), ...sftpName('name'));
  /** Answers to some kind of request; its number is put at 5. */
  const fields: Readonly<Record<string, [type: number, message: Buffer, at: number]>> = {
    'length of a packet of SFTP': [SFTP.READDIR, list, 0],
    'number of names': [SFTP.READDIR, list, 9],
    'length of a name': [SFTP.READDIR, list, 13],
    'flags of attributes': [SFTP.READDIR, list, list.indexOf(Buffer.from('00000005', 'hex'))],
    'length of a handle': [SFTP.OPENDIR, sftpPacket(SFTP.HANDLE, id, sftpString('handle')), 9],
    'attributes of a folder': [SFTP.STAT, sftpPacket(SFTP.ATTRS, id, uint32(5, 0, 0, 0o40755)), 9],
  };
  return Object.entries(fields).flatMap(([what, [type, message, at]]) =>
    lies('sftp', what, damaged({ message, at, bytes: 4 }), (answer) =>
      sftpServer({
        [type]: (number) => {
          const copy = Buffer.from(answer);
          number.copy(copy, 5);
          return copy;
        },
      }),
    ),
  );
}

function textLies(): Lie[] {
  const body = '<ListBucketResult></ListBucketResult>';
  const http = (head: string, content: string) => `HTTP/1.1 200 OK\r\n${head}\r\n\r\n${content}`;
  const size = body.replace('><', '><Contents><Key>k</Key><Size>N</Size></Contents><');
  const line = '-rw-r--r-- 1 a a N Jan 1 2026 name\r\n';
  const once = (answer: Buffer) => (data: Socket) => void data.end(answer);
  const mail = (answer: Buffer) => greets('220 hello\r\n', answer, Buffer.from('250 yes\r\n'));
  return [
    ...lies('objstore', 'length of a body', written(http('content-length: N', body), body.length), inTurn),
    ...lies(
      'objstore',
      'length of a chunk',
      written(http('transfer-encoding: chunked', `N\r\n${body}\r\n0\r\n\r\n`), body.length),
      inTurn,
    ),
    ...lies('objstore', 'size of an object', written(http('connection: close', size), 1), (answer) =>
      inTurn((socket) => void socket.end(answer)),
    ),
    ...lies('http', 'length of a body', written(http('content-length: N', body), body.length), inTurn),
    ...lies(
      'http',
      'length of a chunk',
      written(http('transfer-encoding: chunked', `N\r\n${body}\r\n0\r\n\r\n`), body.length),
      inTurn,
    ),
    ...lies('email', 'largest mail', written('250-hello\r\n250 SIZE N\r\n', 100), mail),
    ...lies('email', 'code of a reply', written('N hello\r\n', 250), mail),
    ...lies('ftp', 'code of a reply', written('N hello\r\n', 220), (answer) =>
      greets(answer, Buffer.from('200 yes\r\n')),
    ),
    ...lies('ftp', 'port of a transfer', written('229 there (|||N|)\r\n', 21), (answer) =>
      ftpServer({ EPSV: answer }),
    ),
    ...lies('ftp', 'size of a file in a list', written(line, 1), (answer) =>
      ftpServer({ LIST: once(answer) }),
    ),
  ];
}

export const LENGTH_LIES: readonly Lie[] = [
  ...postgresLies(),
  ...mysqlLies(),
  ...redisLies(),
  ...mongodbLies(),
  ...memcachedLies(),
  ...sshLies(),
  ...sftpLies(),
  ...textLies(),
];
