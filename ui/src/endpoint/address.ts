/** Where an endpoint answers, and where its page is. */
import { useQuery } from '../api/query.js';
import type { Endpoint } from '../generated/routes.js';

/**
 * The address of the gateway for the host of an endpoint: this machine's gateway, or the one behind the same TLS proxy
 * as this page. Undefined until the API has said the port.
 */
export function useOrigin({ domain }: Pick<Endpoint, 'domain'>): string | undefined {
  const { data } = useQuery('GET /api/', {});
  if (!data) return undefined;
  const host = domain === '*' ? location.hostname : domain;
  return location.protocol === 'https:' ? `https://${host}` : `http://${host}:${data.gateway.port}`;
}

/** The page of a tab. */
export function addressOf({ id }: Pick<Endpoint, 'id'>, tab: string): string {
  return `/ui/endpoints/${id}${tab === 'code' ? '' : `/${tab}`}`;
}
