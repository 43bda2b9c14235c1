/** A backend of one service type for the driver suite: a real server with a free port and a separate folder. */
import type { ServiceConfig, ServiceType } from '../../src/model/service-configs.js';

export interface TestBackend<T extends ServiceType> {
  /** A complete config under which the server is reached. */
  readonly config: ServiceConfig<T>;
  /** Kills the server; stored data may be lost. */
  stop(): Promise<void>;
  /** Starts it again on the same port, with the same accounts. */
  start(): Promise<void>;
  /** Stops it and removes its folder. */
  remove(): Promise<void>;
}
