/** Koa context of the management API. */
import type { ParameterizedContext } from 'koa';
import type { Client } from '../../http/trusted-proxies.js';
import type { Logger } from '../../util/log.js';
import type { AuditTarget } from '../access/audited.js';
import type { Principal } from '../access/principal.js';
import type { Route } from './route.js';

export interface ApiState {
  /** Sent as `X-Request-Id` and logged with every line about the request. */
  requestId: string;
  /** Logger with the request id. */
  log: Logger;
  /** Where it comes from. */
  client: Client;
  /** Who sends it; undefined at routes for everybody. */
  principal?: Principal;
  /** Finds out who sends it, at a route for everybody, or anew. @param isUse whether that counts as a use */
  identify?: (how?: { readonly isUse: boolean }) => Promise<Principal | undefined>;
  /** What its audit entry will say. */
  audited?: AuditTarget;
  /** The id of what it has made or changed, where the answer is written in parts. */
  answeredId?: string | undefined;
  /** True when it changes nothing, though its route can. */
  isTrial?: boolean;
  /** The matched route; undefined before routing. */
  route?: Route;
}

export type ApiContext = ParameterizedContext<ApiState>;
export type Next = () => Promise<unknown>;
