/** The address at which a client reaches the API, for answers that have links to it. */
import type { Config } from '../../config.js';
import { AppError } from '../../errors.js';
import type { Client } from '../../http/trusted-proxies.js';
import { cameByTls } from './session-cookie.js';

/**
 * Such as `https://gateway.example:8443`.
 * @param host the header `Host`
 * @throws AppError malformed_request
 */
export function requestAddress(client: Client, host: string, config: Pick<Config, 'PUBLIC_URL'>): string {
  const address = `${cameByTls(client, host, config) ? 'https' : 'http'}://${host}`;
  if (host === '' || !URL.canParse(address))
    throw new AppError('malformed_request', 'A request needs a Host header with the address of this server');
  return new URL(address).origin;
}
