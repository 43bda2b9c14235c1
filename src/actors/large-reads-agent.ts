/**
 * An HTTP agent for large responses. Node reads at most 64 KiB at a time; larger reads cost fewer system calls and
 * fewer turns of the event loop. Only for plain HTTP: the records of TLS are small.
 */
import { Agent } from 'node:http';
import { connect, type NetConnectOpts, type Socket } from 'node:net';

const READ_BYTES = 256 * 1024;

/** Shared by all connections: each read is copied before the next begins. */
const buffer = Buffer.allocUnsafeSlow(READ_BYTES);

export class LargeReadsAgent extends Agent {
  override createConnection(options: NetConnectOpts): Socket {
    const socket: Socket = connect({
      ...options,
      onread: { buffer, callback: (count) => socket.push(Buffer.from(buffer.subarray(0, count))) },
    });
    return socket;
  }
}
