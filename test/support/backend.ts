/** A backend of one service type, as the driver suite sees it: a real server on a free port and a folder of its own. */
import type { ServiceConfig, ServiceType } from '../../src/service-configs.js';

export interface TestBackend<T extends ServiceType> {
  /** A complete config under which the server is reached. */
  readonly config: ServiceConfig<T>;
  /** Stops the server at once; what it has stored may be lost. */
  stop(): Promise<void>;
  /** Starts it again on the same port, with the same accounts. */
  start(): Promise<void>;
  /** Stops it and removes its folder. */
  remove(): Promise<void>;
}
