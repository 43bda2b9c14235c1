/** The client of other processes for the gateways (`gateway-requests.ts`). */
import { request as httpRequest } from 'node:http';
import { json } from 'node:stream/consumers';
import { AppError, ERROR_CATALOGUE, type ErrorCode, toError } from '../errors.js';
import type { Store } from '../store/database.js';
import type { Log } from '../util/log.js';
import { type AddressedNode, addressedNodes, addressesOf, type ProcessAddress } from './addresses.js';
import type {
  Delivery,
  Failure,
  HandlerResponse,
  Invocation,
  InvokeResult,
  PreparationRequest,
  PreparedCounts,
  Release,
  RouteQuery,
  RouteResult,
} from './gateway-requests.js';

export interface GatewaysOptions {
  readonly store: Store;
  /** Authenticates this process. */
  readonly token: string;
  readonly log: Log;
  /** How long handlers may take, as the configuration says. */
  readonly startTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

/** What a gateway needs besides. */
const SLACK_MS = 10_000;
/** Longest wait for a connection: a machine that is switched off does not refuse it. */
const CONNECT_MS = 3_000;

/** No gateway has got the request. */
export class NotSent extends AppError {}

/** Every method rejects with an AppError: no_gateway when none can be reached, or what the gateway says. */
export class Gateways {
  readonly #options: GatewaysOptions;

  constructor(options: GatewaysOptions) {
    this.#options = options;
  }

  /** Starts a version, sends it a request, and ends it. */
  invoke(invocation: Invocation): Promise<InvokeResult> {
    const { startTimeoutMs, requestTimeoutMs } = this.#options;
    return this.#ask('/invoke', invocation, startTimeoutMs + requestTimeoutMs + SLACK_MS);
  }

  /** Sends a request to what serves an endpoint. */
  deliver(delivery: Delivery): Promise<HandlerResponse> {
    return this.#ask('/deliver', delivery, this.#options.requestTimeoutMs + SLACK_MS);
  }

  /** Where a request would go. */
  route(query: RouteQuery): Promise<RouteResult> {
    return this.#ask('/route', query, SLACK_MS);
  }

  /** All that are alive. */
  nodes(): Promise<AddressedNode[]> {
    return addressedNodes(this.#options.store, 'gateway');
  }

  /**
   * Starts handlers on one gateway, before anything routes to them.
   * @throws AppError handler_start_failed; no_gateway when it has not answered, and may be asked again
   */
  prepare(address: ProcessAddress, preparation: PreparationRequest): Promise<PreparedCounts> {
    const timeoutMs = preparation.handlers.length * this.#options.startTimeoutMs + SLACK_MS;
    return this.#askOne(address, '/prepare', preparation, timeoutMs);
  }

  /** Ends what was prepared for an apply. */
  async release(address: ProcessAddress, release: Release): Promise<void> {
    await this.#askOne(address, '/release', release, SLACK_MS);
  }

  async #askOne<T>(address: ProcessAddress, path: string, body: object, timeoutMs: number): Promise<T> {
    try {
      return (await post(address, path, this.#options.token, JSON.stringify(body), timeoutMs)) as T;
    } catch (thrown) {
      if (!(thrown instanceof NotConnected)) throw thrown;
      throw new AppError('no_gateway', 'The gateway cannot be reached.', {}, { cause: thrown });
    }
  }

  /** Asks the first gateway that can be reached. Both sides have the same version, so the shapes are known. */
  async #ask<T>(path: string, body: object, timeoutMs: number): Promise<T> {
    const { store, token, log } = this.#options;
    const addresses = await addressesOf(store, 'gateway');
    let busy: AppError | undefined;
    for (const address of addresses) {
      try {
        return (await post(address, path, token, JSON.stringify(body), timeoutMs)) as T;
      } catch (thrown) {
        // Another one may take it.
        if (thrown instanceof AppError && thrown.code === 'gateway_busy') busy = thrown;
        else if (thrown instanceof NotConnected)
          log.warn({ err: toError(thrown.cause) }, 'a gateway cannot be reached');
        else throw thrown;
      }
    }
    if (busy) throw new NotSent(busy.code, busy.message);
    throw new NotSent(
      'no_gateway',
      addresses.length === 0
        ? 'No gateway is alive that this machine can reach; start the `gateway` process, or set GATEWAY_INTERNAL_PORT.'
        : 'No gateway can be reached at the moment; try again.',
    );
  }
}

/** Another gateway can be asked: this one has not got the request. */
class NotConnected extends Error {
  override readonly name = 'NotConnected';
}

async function post(
  address: ProcessAddress,
  path: string,
  token: string,
  body: string,
  timeoutMs: number,
): Promise<unknown> {
  const answer = await new Promise<{ status: number; value: unknown }>((resolve, reject) => {
    let isConnected = false;
    const outgoing = httpRequest({
      ...address,
      method: 'POST',
      path,
      // A connection that is kept may be closed by the other side just when it is used again.
      agent: false,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    });
    const end = (ms: number) =>
      setTimeout(() => outgoing.destroy(new Error(`no answer within ${ms} ms`)), ms);
    let timer = end(CONNECT_MS);
    outgoing.on('close', () => clearTimeout(timer));
    outgoing.on('socket', (socket) =>
      socket.once('connect', () => {
        isConnected = true;
        clearTimeout(timer);
        timer = end(timeoutMs);
      }),
    );
    outgoing.on('error', (cause) => {
      reject(isConnected ? notAnswered(cause) : new NotConnected('not connected', { cause }));
    });
    outgoing.on('response', (response) => {
      json(response).then(
        (value) => resolve({ status: response.statusCode ?? 500, value }),
        (thrown: unknown) => reject(notAnswered(toError(thrown))),
      );
    });
    outgoing.end(body);
  });
  if (answer.status === 200) return answer.value;
  const { code, error } = answer.value as Failure;
  throw new AppError(code in ERROR_CATALOGUE ? (code as ErrorCode) : 'internal_error', error);
}

/** What came of the request is not known. */
function notAnswered(cause: Error): AppError {
  const text = `The gateway has not answered (${cause.message}); try again.`;
  return new AppError('no_gateway', text, {}, { cause });
}
