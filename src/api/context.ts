/** Koa context of the management API. */
import type { ParameterizedContext } from 'koa';
import type { Logger } from '../util/log.js';
import type { Route } from './route.js';

export interface ApiState {
  /** Sent as `X-Request-Id` and logged with every line about the request. */
  requestId: string;
  /** Logger with the request id. */
  log: Logger;
  /** True when it has the API_KEY. */
  hasKey?: boolean;
  /** The matched route; undefined before routing. */
  route?: Route;
}

export type ApiContext = ParameterizedContext<ApiState>;
export type Next = () => Promise<unknown>;
