/** Servers that do not keep to the protocol of MySQL. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { mysqlDriver } from '../../../src/actors/drivers/mysql/driver.js';
import { ServiceError } from '../../../src/actors/service-error.js';
import { connectTo } from '../../support/driver-calls.js';

/** HandshakeV10: version, connection id, 8 bytes of a challenge, capabilities, 13 more bytes, authentication plugin. */
const HANDSHAKE = Buffer.concat([
  Buffer.from('\x0a8.0.0\0\x01\0\0\0abcdefgh\0', 'latin1'),
  Buffer.from([0xff, 0xf7, 45, 2, 0, 0xff, 0x81, 21]),
  Buffer.alloc(10),
  Buffer.from('abcdefghijkl\0mysql_native_password\0', 'latin1'),
]);
const OK = Buffer.from([0, 0, 0, 2, 0, 0, 0]);

describe('driver mysql: servers that lie', () => {
  let server: Server;
  /** What the server sends for everything after the login. */
  let answer: Buffer;

  before(async () => {
    server = createServer((socket) => {
      socket.on('error', () => undefined);
      let received = 0;
      socket.on('data', () => send(socket, received++ === 0 ? [OK, 2] : [answer, 1]));
      send(socket, [HANDSHAKE, 0]);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(async () => {
    server.close();
    await once(server, 'close');
  });

  for (const [what, bytes] of [
    ['nothing but the marker', [0xfe]],
    ['half of its flags', [0xfe, 0, 0, 2]],
    ['no byte at all', []],
  ] as const) {
    it(`an end of rows of MySQL with ${what} fails the connection`, async () => {
      answer = Buffer.from(bytes);
      const { port } = server.address() as AddressInfo;
      const config = { host: '127.0.0.1', port, database: 'd', username: 'u', use_ssl: false, pool_size: 1 };
      const outcome = await connectTo(mysqlDriver, config).then(
        () => 'connected',
        (error: unknown) => error,
      );
      expect(outcome)
        .to.be.instanceOf(ServiceError)
        .with.property('kind')
        .that.is.oneOf(['unavailable', 'backend', 'deadline']);
    });
  }
});

function send(socket: Socket, [payload, sequence]: readonly [Buffer, number]): void {
  const header = Buffer.from([payload.length & 0xff, payload.length >> 8, 0, sequence]);
  socket.write(Buffer.concat([header, payload]));
}
