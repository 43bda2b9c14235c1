/** What the runner of an endpoint is told, and what it uses of the gateway. */
import type { Serving } from '../../contracts/front.js';
import type { DesiredDeployment } from '../../store/endpoint-runs.js';
import type { OwnObservation } from '../../store/observations.js';
import type { Logger } from '../../util/log.js';
import type { HandlerProcess } from '../handlers/handler-process.js';
import type { ProcessSettings } from '../handlers/process-settings.js';

/** The desired state of an endpoint. */
export interface DesiredState extends ProcessSettings {
  /** What should serve; null: nothing. */
  readonly deployment: DesiredDeployment | null;
  /** Revision of the endpoint this is from. */
  readonly revision: number;
}

/**
 * What a runner finds. `stopped`: nothing served before; `asleep`: what is desired is new, and what served before it
 * is asleep; `woken`: what is desired was asleep, and has a request.
 */
export type Beginning = 'stopped' | 'asleep' | 'woken';

/** What a runner observes of its endpoint. */
export type RunnerObservation = Omit<OwnObservation, 'endpoint_id'>;

/** The part of the gateway that a runner uses. */
export interface EndpointRunnerHost {
  /**
   * Fetches the artifact and starts it.
   * @param isWoken a request waits for it that found it asleep
   * @param abandoned aborted when nobody wants it any more: then its process is ended, if it is not ready
   * @throws when it does not become ready
   */
  start(
    artifact: string,
    settings: ProcessSettings,
    version: number,
    isWoken: boolean,
    abandoned: AbortSignal,
  ): Promise<HandlerProcess>;
  /** Sends requests to another handler; resolves when all of them go there. */
  route(serving: Serving): Promise<void>;
  /** Resolves when a process that was taken out of service has no request left, or their deadlines are over. */
  drained(process: HandlerProcess): Promise<void>;
  /** @throws when it cannot be saved now */
  saveObservation(observation: RunnerObservation): Promise<void>;
  /** A handler of this revision of the endpoint keeps crashing. @throws when it cannot be saved now */
  saveCrashLoop(deployment: DesiredDeployment, revision: number, error: string): Promise<void>;
  /** The crash loop is over. @throws when it cannot be saved now */
  saveRecovery(deployment: DesiredDeployment): Promise<void>;
  restarted(reason: 'crash' | 'deadline', version: number): void;
  /** A handler has crashed, or could not be started: an error in the log of the endpoint. */
  failed(version: number | null, message: string): void;
  /**
   * It is asleep and has no process any more: the runner is not needed until it is woken.
   * @param proven the last deployment that has served here
   */
  asleep(proven: string | undefined): void;
  readonly log: Logger;
}
