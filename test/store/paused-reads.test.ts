/** What the database sends is read with pauses. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect } from 'chai';
import { pauseReads } from '../../src/store/paused-reads.js';

const BYTES = 8 * 1024 * 1024;

describe('long answers of the database', () => {
  it('are read a part at a time, and whole', async () => {
    const server = createServer((socket) => socket.end(Buffer.alloc(BYTES)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    let [all, inTurn, most] = [0, 0, 0];
    socket.on('data', ({ length }: Buffer) => {
      all += length;
      inTurn += length;
      most = Math.max(most, inTurn);
    });
    pauseReads(socket);
    const count = () => {
      inTurn = 0;
      if (!socket.closed) setImmediate(count);
    };
    count();
    await once(socket, 'close');
    server.close();
    expect(all).to.equal(BYTES);
    // A chunk of a socket has 64 KiB.
    expect(most).to.be.at.most((256 + 64) * 1024);
  });
});
