/**
 * Starts handlers on this node: a few at a time, for which owners take turns, with their variables, unless an apply has
 * prepared them.
 */
import pTimeout from 'p-timeout';
import { type LimitSettings, limitsAbove, limitsInForce } from '../../model/endpoint-limits.js';
import { ownerOfEndpoint, WITHOUT_DOMAIN } from '../../model/owner.js';
import type { RoutedEndpoint } from '../../store/endpoint-runs.js';
import type { Logger } from '../../util/log.js';
import { type Turn, Turns } from '../../util/turns.js';
import type { ArtifactCache } from './artifact-cache.js';
import { type Environments, explainStart } from './environments.js';
import {
  type HandlerListeners,
  type HandlerProcess,
  type HandlerSettings,
  type ServiceAccess,
  startHandler,
} from './handler-process.js';
import { type HandlerStart, PreparedHandlers } from './prepared-handlers.js';
import type { ProcessSettings } from './process-settings.js';

/** Handlers started at a time when many should run, as after a restart of the machine. */
const CONCURRENT_STARTS = 8;
/** Beyond them, for owners that have none: what takes long for others must not keep them waiting. */
const STARTS_BEYOND = 8;
/** A start that takes longer does not count among those. */
const SLOW_START_MS = 500;

export interface HandlerStartsOptions {
  readonly artifacts: ArtifactCache;
  readonly environments: Environments;
  /** Folder for the sockets of handlers. */
  readonly runDir: string;
  /** How handlers reach backend services. */
  readonly services: ServiceAccess;
  /** Settings of all handlers. */
  readonly handlers: HandlerSettings;
  /** Limits of handlers, where their endpoints set no lower ones. */
  readonly limits: LimitSettings;
  /** An endpoint as this gateway knows it. */
  readonly endpointOf: (id: string) => RoutedEndpoint | undefined;
  readonly log: Logger;
}

/** A handler that is to be started. */
export interface HandlerToStart {
  readonly endpointId: string;
  readonly artifact: string;
  readonly settings: ProcessSettings;
  readonly listeners: HandlerListeners;
  /** The level of the line in the log that says that it is ready. */
  readonly level: 'info' | 'debug';
  /** Aborted when nobody wants it any more: then its process is ended, if it is not ready. */
  readonly abandoned?: AbortSignal;
}

/** What one start is told besides the handler: who listens, where it logs, and how. */
type Launch = Pick<HandlerToStart, 'listeners' | 'level' | 'abandoned'> & { readonly log: Logger };

export class HandlerStarts {
  readonly #options: HandlerStartsOptions;
  /** Handlers that are started for applies. */
  readonly prepared: PreparedHandlers;
  readonly #turns = new Turns({ places: CONCURRENT_STARTS, beyond: STARTS_BEYOND });
  #nextInstance = 1;

  constructor(options: HandlerStartsOptions) {
    this.#options = options;
    this.prepared = new PreparedHandlers({
      start: (turn, handler, listeners, abandoned) => {
        const log = this.#logOf(handler.endpointId, options.endpointOf(handler.endpointId));
        const launch = () => this.#launch(handler, { listeners, level: 'info', abandoned, log });
        return this.#inTurn(turn, launch, abandoned);
      },
      limitsOf: (limits) => limitsInForce(limits, options.limits),
      decrypted: (variable) => options.environments.valueOf(variable),
      log: options.log,
    });
  }

  /**
   * Starts a handler that is to serve, or takes the one that was prepared for that.
   * @throws when it does not become ready
   */
  start(handler: HandlerToStart): Promise<HandlerProcess> {
    const { endpointId, artifact, listeners, level, abandoned } = handler;
    const begin = async () => {
      const endpoint = this.#options.endpointOf(endpointId);
      const log = this.#logOf(endpointId, endpoint);
      const start = await this.#startOf(handler, endpoint, log);
      const prepared = this.prepared.take(start, listeners);
      if (!prepared) return await this.#launch(start, { ...handler, log });
      log[level]({ handler_pid: prepared.pid, artifact }, 'handler ready, prepared before');
      return prepared;
    };
    const known = this.#options.endpointOf(endpointId);
    return this.#inTurn(known ? ownerOfEndpoint(known) : WITHOUT_DOMAIN, begin, abandoned);
  }

  /**
   * Starts a handler beside those that serve.
   * @param endpoint its own, as the caller knows it
   * @throws when it does not become ready
   */
  startBeside(
    endpoint: RoutedEndpoint,
    handler: Omit<HandlerToStart, 'endpointId'>,
  ): Promise<HandlerProcess> {
    const begin = async () => {
      const log = this.#logOf(endpoint.id, endpoint);
      const start = await this.#startOf({ ...handler, endpointId: endpoint.id }, endpoint, log);
      return await this.#launch(start, { ...handler, log });
    };
    return this.#inTurn(ownerOfEndpoint(endpoint), begin, handler.abandoned);
  }

  /**
   * Only so many start at a time; one that takes long, which costs the machine nothing, keeps no others waiting.
   * @param abandoned ends the wait for the turn of its owner
   */
  #inTurn(
    turn: string | Turn,
    start: () => Promise<HandlerProcess>,
    abandoned?: AbortSignal,
  ): Promise<HandlerProcess> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        const starting = start();
        starting.then(resolve, reject);
        return pTimeout(starting, { milliseconds: SLOW_START_MS, fallback: () => undefined }).catch(
          () => undefined, // whoever asked for it gets the error
        );
      };
      this.#turns.run(turn, begin, abandoned).catch(reject);
    });
  }

  async #startOf(
    { endpointId, artifact, settings: { limits, environment } }: HandlerToStart,
    endpoint: RoutedEndpoint | undefined,
    log: Logger,
  ): Promise<HandlerStart> {
    const variables = await this.#options.environments.of(endpointId, environment);
    const above = limitsAbove(endpoint?.limits ?? null, limits);
    if (above.length > 0)
      log.warn({ limits: above }, 'limits of the endpoint are above those of this gateway, which count');
    return { endpointId, artifact, limits, variables };
  }

  /** Its lines carry the id of the API call that asked for what the endpoint serves. */
  #logOf(endpointId: string, endpoint: RoutedEndpoint | undefined): Logger {
    const request_id = endpoint?.deployment?.request_id;
    return this.#options.log.child({ request_id, endpoint_id: endpointId });
  }

  async #launch(
    { endpointId, artifact, limits, variables }: HandlerStart,
    { log, listeners, level, abandoned }: Launch,
  ): Promise<HandlerProcess> {
    const { artifacts, runDir, services, handlers: settings } = this.#options;
    const executable = await artifacts.get(artifact);
    const started = performance.now();
    const handler = await startHandler({
      executable,
      instanceId: this.#nextInstance++,
      runDir,
      endpointId,
      variables,
      services,
      limits,
      settings,
      log,
      listeners,
      abandoned,
    }).catch((error: unknown) => {
      throw explainStart(error);
    });
    const ms = Math.round(performance.now() - started);
    log[level]({ handler_pid: handler.pid, artifact, ms }, 'handler ready');
    return handler;
  }
}
