/**
 * Puts a guard on every connection that this process makes, whichever library makes it: few of them take a socket from
 * outside. For the process of one service, whose only outgoing connections are those with its backend.
 */
import { Socket } from 'node:net';
import tls from 'node:tls';
import { toError } from '../../errors.js';
import type { ServiceType } from '../../model/service-configs.js';
import { FrameGuard, MEMCACHED_FRAMES, MONGODB_FRAMES, MYSQL_FRAMES } from './frame-guard.js';
import type { Guard } from './guard.js';
import { RedisGuard } from './redis-guard.js';
import { SmtpGuard } from './smtp-guard.js';

/**
 * Guards by the type of the service. The drivers of object storages and file servers count what they get: files, of
 * which they stream some, and lists, on connections that have nothing else. Libraries bound heads, replies and packets.
 */
const GUARDS: { readonly [T in ServiceType]?: (limit: number) => Guard } = {
  mysql: (limit) => new FrameGuard(MYSQL_FRAMES, limit),
  mongodb: (limit) => new FrameGuard(MONGODB_FRAMES, limit),
  memcached: (limit) => new FrameGuard(MEMCACHED_FRAMES, limit),
  redis: (limit) => new RedisGuard(limit),
  email: () => new SmtpGuard(),
};

/** @param limit bytes of one answer */
export function guardConnections(type: ServiceType, limit: number): void {
  const make = GUARDS[type];
  if (!make) return;
  const { connect } = Socket.prototype;
  Socket.prototype.connect = function (this: Socket, ...args: Parameters<typeof connect>) {
    guard(this, make(limit));
    return connect.apply(this, args);
  } as typeof connect;
  // A connection that changes to TLS gets another socket, which does not connect.
  const connectTls = tls.connect;
  tls.connect = ((...args: Parameters<typeof connectTls>) => {
    const socket = connectTls(...args);
    const [{ socket: below }] = args as unknown as [tls.ConnectionOptions];
    // Without its connection, it cannot be shut down: a library that tries gets an error, and may throw it.
    below?.prependOnceListener('close', () => socket.destroy());
    if (!Object.hasOwn(socket, 'push')) guard(socket, make(limit));
    return socket;
  }) as typeof connectTls;
}

/** Node hands over what it has read by calling `push`, after decrypting it. */
function guard(socket: Socket, answers: Guard): void {
  const push = socket.push;
  socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (!Buffer.isBuffer(chunk)) return push.call(socket, chunk, encoding);
    try {
      const passed = answers.pass(chunk);
      return passed.length === 0 || push.call(socket, passed);
    } catch (thrown) {
      socket.destroy(toError(thrown));
      return false;
    }
  };
}
