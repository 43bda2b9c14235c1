/** Finds out from where a request comes: the peer, or what a trusted proxy (`TRUSTED_PROXIES`) says. */
import type { Config } from '../../config.js';
import { TrustedProxies } from '../../http/trusted-proxies.js';
import type { ApiContext, Next } from '../route/context.js';

export function client({ TRUSTED_PROXIES }: Pick<Config, 'TRUSTED_PROXIES'>) {
  const proxies = new TrustedProxies(TRUSTED_PROXIES);
  return (context: ApiContext, next: Next): Promise<unknown> => {
    context.state.client = proxies.clientOf(context.req.socket.remoteAddress, context.req.rawHeaders);
    return next();
  };
}
