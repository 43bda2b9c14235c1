/** Lies that every protocol can be told: nothing, next to nothing, and TLS that never ends. */
import type { Socket } from 'node:net';
import { endless, inTurn, type Lie, type Reply } from './lie.js';
import { MONGODB_WELCOME, mongodbAnswer } from './mongodb.js';
import { greets, MYSQL_HANDSHAKE } from './others.js';
import { WELCOME } from './postgres.js';
import { liesOf, type ProtocolName } from './protocols.js';

const ZEROS = Buffer.alloc(16);

/** What a server says first; others wait for their client. */
const BEGINNINGS = {
  postgres: WELCOME,
  mysql: MYSQL_HANDSHAKE,
  redis: Buffer.from('$10000\r\nredis_version:'),
  mongodb: mongodbAnswer(MONGODB_WELCOME),
  memcached: Buffer.from('810b000000000000000000ff', 'hex'),
  ftp: Buffer.from('220-hello\r\n'),
  ftps: Buffer.from('220-hello\r\n'),
  sftp: Buffer.from('SSH-2.0-hello'),
  email: Buffer.from('220-hello\r\n'),
  objstore: Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n<ListBucketResult>'),
  http: Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n'),
} as const satisfies Partial<Record<ProtocolName, Buffer>>;

const NETWORK = Object.keys(BEGINNINGS) as (keyof typeof BEGINNINGS)[];
const SPEAK_FIRST: ReadonlySet<ProtocolName> = new Set(['mysql', 'ftp', 'ftps', 'sftp', 'email']);

export const ZERO_LIES: readonly Lie[] = NETWORK.flatMap((name) =>
  liesOf(name, {
    'sixteen zeros for everything': (socket) => {
      if (SPEAK_FIRST.has(name)) socket.write(ZEROS);
      socket.on('data', () => socket.write(ZEROS));
    },
  }),
);

/** One byte a second: these, and then others. */
function slowly(bytes: Buffer): (socket: Socket) => void {
  return (socket) => {
    let at = 0;
    const timer = setInterval(
      () => socket.write(bytes.subarray(at, ++at).length ? bytes.subarray(at - 1, at) : 'a'),
      1_000,
    );
    socket.on('close', () => clearInterval(timer));
  };
}

export const SLOW_LIES: readonly Lie[] = NETWORK.flatMap((name) => {
  const tell = slowly(BEGINNINGS[name]);
  return liesOf(name, {
    'one byte a second': SPEAK_FIRST.has(name)
      ? tell
      : (socket) => void socket.once('data', () => tell(socket)),
  });
});

/** A record of TLS: the kind of a handshake, its version, the length of its content. */
const record = (content: Buffer) => {
  const header = Buffer.from('1603030000', 'hex');
  header.writeUInt16BE(content.length, 3);
  return Buffer.concat([header, content]);
};
const TLS_LIES_TOLD: Readonly<Record<string, Reply>> = {
  'a handshake that stalls': Buffer.from('160303', 'hex'),
  // A client skips a `hello_request`, which is four zeros.
  'a handshake that never ends': endless(Buffer.alloc(0), record(Buffer.alloc(16_384))),
  'the longest message of a handshake, byte by byte': slowly(
    record(Buffer.from(`02ffffff${'00'.repeat(1_000)}`, 'hex')),
  ),
};

/** What a server says until TLS begins. */
const UNTIL_TLS = {
  'postgres with TLS': (lie) => inTurn(Buffer.from('S'), lie),
  'mysql with TLS': (lie) => {
    const handshake = Buffer.from(MYSQL_HANDSHAKE);
    const capabilities = handshake.indexOf('fff72d', 'hex');
    handshake[capabilities + 1] = 0xff;
    return greets(handshake, lie);
  },
  'redis with TLS': (lie) => inTurn(lie),
  'mongodb with TLS': (lie) => inTurn(lie),
  'objstore with TLS': (lie) => inTurn(lie),
  'http with TLS': (lie) => inTurn(lie),
  'email with TLS': (lie) => inTurn(lie),
  'email with STARTTLS': (lie) =>
    greets('220 hello\r\n', Buffer.from('250-hello\r\n250 STARTTLS\r\n'), Buffer.from('220 go\r\n'), lie),
  ftps: (lie) => greets('220 hello\r\n', Buffer.from('234 go\r\n'), lie),
} as const satisfies Partial<Record<ProtocolName, (lie: Reply) => (socket: Socket) => void>>;

/** Tells it once, however many chunks come. */
function once(lie: Reply): Reply {
  const told = new WeakSet<Socket>();
  return (socket) => {
    if (told.has(socket)) return;
    told.add(socket);
    if (typeof lie === 'function') lie(socket);
    else socket.write(lie);
  };
}

export const TLS_LIES: readonly Lie[] = (Object.keys(UNTIL_TLS) as (keyof typeof UNTIL_TLS)[]).flatMap(
  (name) =>
    liesOf(
      name,
      Object.fromEntries(
        Object.entries(TLS_LIES_TOLD).map(([what, lie]) => [what, UNTIL_TLS[name](once(lie))]),
      ),
    ),
);
