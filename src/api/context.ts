/** What the middleware knows about a request. */
import type { ParameterizedContext } from 'koa';
import type { Logger } from '../log.js';
import type { Route } from './route.js';

export interface ApiState {
  /** Goes out as `X-Request-Id`, and stands on every log line about the request. */
  requestId: string;
  /** Logs with the request id. */
  log: Logger;
  /** The route that serves the request, once it is known. */
  route?: Route;
}

export type ApiContext = ParameterizedContext<ApiState>;
export type Next = () => Promise<unknown>;
