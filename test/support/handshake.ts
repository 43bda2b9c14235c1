/** A client of TLS. */
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';

/**
 * Connects to a port of this machine, with the name of a host.
 * @param options others than these, such as the authority that is trusted (`ca`)
 * @throws when the handshake fails, the certificate is not for the host, or its issuer is not known
 */
export function handshake(
  port: number,
  servername: string,
  options: ConnectionOptions = {},
): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, servername, ...options }, () => resolve(socket));
    socket.on('error', reject);
  });
}
