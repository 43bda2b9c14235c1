/**
 * The public address of a gateway. The supervisor binds the socket and keeps it; a front inherits it, listens and
 * accepts. So connections wait in the kernel, and none is refused, while one front replaces another.
 */
import { lookup } from 'node:dns/promises';
import net from 'node:net';
import { getSystemErrorMap } from 'node:util';

/** A bound socket that does not listen. */
export interface PublicSocket {
  /** The descriptor that a front inherits. */
  readonly fd: number;
  readonly url: string;
  /** Closes it here; the address is free when the last front has closed it too. */
  close(): void;
}

/** Node's wrapper of a TCP socket. Numbers that functions return are error codes, 0 for success. */
interface Handle {
  readonly fd: number;
  getsockname(name: { address?: string; port?: number }): number;
  close(): void;
}

/**
 * How Node makes the socket of a server: binds it, without listening. It is not documented, but `node:cluster` is built
 * on it, and there is no other way: `listen` would make Node itself accept connections.
 */
const { _createServerHandle: bind } = net as unknown as {
  _createServerHandle(
    address: string,
    port: number,
    addressType: number,
    fd: undefined,
    flags: number,
  ): Handle | number;
};

/** Those that a front serves. */
export interface PublicSockets {
  readonly plain: PublicSocket;
  /** The socket for TLS; undefined for none. */
  readonly secure: PublicSocket | undefined;
}

/**
 * Binds the sockets of a front.
 * @param tlsPort of TLS; undefined for none
 * @throws Error when one of them cannot be bound
 */
export async function openPublicSockets(
  host: string,
  port: number,
  tlsPort: number | undefined,
): Promise<PublicSockets> {
  const plain = await openPublicSocket(host, port);
  try {
    const secure = tlsPort === undefined ? undefined : await openPublicSocket(host, tlsPort, 'https');
    return { plain, secure };
  } catch (thrown) {
    plain.close();
    throw thrown;
  }
}

/**
 * Binds a socket to an address.
 * @param host an address or a name
 * @param port 0 for a free one
 * @throws Error when it cannot be bound
 */
export async function openPublicSocket(
  host: string,
  port: number,
  scheme: 'http' | 'https' = 'http',
): Promise<PublicSocket> {
  const { address, family } = await lookup(host).catch((error: Error) => {
    throw cannotOpen(error.message);
  });
  const handle = bind(address, port, family, undefined, 0);
  if (typeof handle === 'number') throw cannotOpen(systemError(handle, address, port));
  // `bind` itself does not report an address in use.
  const name: { address?: string; port?: number } = {};
  const code = handle.getsockname(name);
  if (code !== 0) {
    handle.close();
    throw cannotOpen(systemError(code, address, port));
  }
  const shown = family === 6 ? `[${address}]` : address;
  return { fd: handle.fd, url: `${scheme}://${shown}:${name.port}`, close: () => handle.close() };
}

/** The error of a gateway whose port cannot be opened. */
export function cannotOpen(reason: string): Error {
  return new Error(`The gateway cannot open its port: ${reason}`);
}

/** The message of a system error, in the words of `net.Server.listen`. */
function systemError(code: number, address: string, port: number): string {
  const [name, text] = getSystemErrorMap().get(code) ?? [`error ${code}`, 'unknown'];
  return `listen ${name}: ${text} ${address}:${port}`;
}
