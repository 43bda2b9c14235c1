/** Requests of this product itself to handlers: to a version that is tried, and to what serves. */
import pTimeout from 'p-timeout';
import { TRIAL } from '../contracts/front.js';
import { AppError, requireFound } from '../errors.js';
import type {
  Delivery,
  HandlerResponse,
  Invocation,
  InvokeResult,
  RouteQuery,
  RouteResult,
  SentRequest,
} from '../internal/gateway-requests.js';
import { headOf } from '../model/handler-request.js';
import { ownerOfEndpoint, titleOfOwner, turnOf } from '../model/owner.js';
import type { Store } from '../store/database.js';
import { type RoutedEndpoint, routedEndpoints } from '../store/endpoint-runs.js';
import { Turns } from '../util/turns.js';
import type { Front } from './front/front.js';
import type { EndpointState } from './front/messages.js';
import { type HandlerProcess, HandlerStartError } from './handlers/handler-process.js';

export interface InvocationsOptions {
  readonly store: Store;
  readonly front: Pick<Front, 'apply' | 'request' | 'route'>;
  /** The endpoint as the front knows it. */
  readonly stateOf: (endpoint: RoutedEndpoint) => EndpointState;
  /**
   * Starts a handler beside those that serve.
   * @param onLine called with each line that it prints
   * @param abandoned aborts when nobody waits for it any more: then it does not wait for its turn either
   */
  readonly start: (
    endpoint: RoutedEndpoint,
    artifact: string,
    onLine: (line: string) => void,
    abandoned: AbortSignal,
  ) => Promise<HandlerProcess>;
}

/**
 * Handlers that run for one request, at a time: each takes as much memory as one that serves. There may be more for
 * owners that have none, and for domains of theirs that have none.
 */
const AT_A_TIME = 4;
const BEYOND_OF_PARTS = 4;
const BEYOND = 2 * BEYOND_OF_PARTS;
/** Each holds its body in memory. An owner that has none waiting is let in beyond the number of all. */
const MAX_WAITING_OF_DOMAIN = 16;
/** Most that wait of one owner, in all of its domains together. */
const MAX_WAITING_OF_OWNER = 32;
const MAX_WAITING = 64;
const MAX_LINES = 1_000;
const MAX_LINE_CHARACTERS = 256 * 1024;
/** Longest wait for what a handler has printed last, after its end. */
const OUTPUT_MS = 1_000;

export class Invocations {
  readonly #options: InvocationsOptions;
  readonly #turns = new Turns({ places: AT_A_TIME, beyond: BEYOND, beyondOfParts: BEYOND_OF_PARTS });

  constructor(options: InvocationsOptions) {
    this.#options = options;
  }

  /**
   * Starts a version for one request, and ends it.
   * @param signal aborts when nobody waits for the answer any more: then the request is not sent
   * @throws AppError
   */
  async invoke(invocation: Invocation, signal: AbortSignal): Promise<InvokeResult> {
    const domain = ownerOfEndpoint(await this.#endpoint(invocation.endpointId));
    const turn = turnOf(invocation.principal, domain);
    const ofDomain = this.#turns.waiting(turn.owner, domain);
    const ofOwner = this.#turns.waiting(turn.owner);
    const isFull = ofOwner > 0 && this.#turns.waiting() >= MAX_WAITING;
    if (ofDomain >= MAX_WAITING_OF_DOMAIN || ofOwner >= MAX_WAITING_OF_OWNER || isFull)
      throw new AppError(
        'gateway_busy',
        `Many versions of ${titleOfOwner(domain)} are being tried at the moment; try again later.`,
      );
    return this.#turns.run(turn, () => this.#invoke(invocation, signal), signal);
  }

  /** Sends a request to what serves an endpoint. @throws AppError */
  async deliver({ attempt, ...request }: Delivery): Promise<HandlerResponse> {
    const endpoint = await this.#endpoint(request.endpointId);
    return this.#send(endpoint, request.endpointId, request, attempt);
  }

  /** Where a request would go. @throws AppError */
  async route(query: RouteQuery): Promise<RouteResult> {
    return this.#options.front.route(query);
  }

  async #invoke(invocation: Invocation, signal: AbortSignal): Promise<InvokeResult> {
    signal.throwIfAborted();
    const { front, stateOf, start } = this.#options;
    const endpoint = await this.#endpoint(invocation.endpointId);
    const logs = new Lines();
    const process = await start(endpoint, invocation.artifact, (line) => logs.add(line), signal).catch(
      (thrown: unknown) => {
        if (thrown instanceof HandlerStartError) throw new AppError('handler_start_failed', thrown.message);
        throw thrown;
      },
    );
    // Nothing else routes there: no client can name it.
    const id = `${TRIAL}${process.instance.id}`;
    const { instance } = process;
    let response: HandlerResponse;
    try {
      const serving = { kind: 'running', targets: [{ weight: 1, version: 0, instance }] } as const;
      await front.apply([{ ...stateOf(endpoint), id, routed: false, serving }]);
      signal.throwIfAborted();
      response = await this.#send(endpoint, id, invocation);
    } finally {
      await front.apply([], [id]);
      await process.stop();
      await pTimeout(process.outputEnded, { milliseconds: OUTPUT_MS, fallback: () => undefined });
    }
    return { ...response, logs: logs.all };
  }

  /** The endpoint as it is now: nobody waits for gateways when an endpoint changes that does not run. */
  async #endpoint(id: string): Promise<RoutedEndpoint> {
    const [endpoint] = await routedEndpoints(this.#options.store, [id]);
    return requireFound(endpoint, 'endpoint', id);
  }

  async #send(
    { domain }: RoutedEndpoint,
    id: string,
    { method, path, headers, bodyBase64, requestId }: SentRequest,
    attempt?: number,
  ): Promise<HandlerResponse> {
    const body = Buffer.from(bodyBase64, 'base64');
    const host = domain === '*' ? 'localhost' : domain;
    const head = headOf({ method, path, headers, body }, host, requestId);
    return this.#options.front.request(id, head, bodyBase64, attempt);
  }
}

/** The lines of a handler, up to a limit. */
class Lines {
  readonly all: string[] = [];
  #characters = 0;
  #isFull = false;

  add(line: string): void {
    if (this.#isFull) return;
    this.#characters += line.length;
    this.#isFull = this.all.length === MAX_LINES || this.#characters > MAX_LINE_CHARACTERS;
    this.all.push(this.#isFull ? '... the rest is in the log of the gateway' : line);
  }
}
