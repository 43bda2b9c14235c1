/** What other processes ask of gateways: the client is `gateways.ts`, the server `src/gateway/internal-server.ts`. */
import type { EndpointLimits } from '../model/endpoint-limits.js';
import type { HandlerRequest } from '../model/handler-request.js';

/** A request to a handler, as JSON. */
export interface SentRequest extends Omit<HandlerRequest, 'body'> {
  readonly endpointId: string;
  readonly bodyBase64: string;
  /** Id of the request, for logs and for the handler. */
  readonly requestId: string;
}

/** Sends a request to a process of its own that runs a version. */
export interface Invocation extends SentRequest {
  readonly artifact: string;
  /** Whose turn it takes, and of theirs that of the domain; a process of the version before does not say it. */
  readonly principal?: string;
}

/** Sends a request to what serves an endpoint. */
export interface Delivery extends SentRequest {
  /** How often it was sent, this time included. */
  readonly attempt: number;
}

/** A handler that is to be started before anything routes to it. */
export interface PreparedHandler {
  /** Id of the endpoint as it will be: it need not be there yet. */
  readonly endpointId: string;
  /** The domain whose turn its start takes. */
  readonly owner: string;
  /** Whose turn it is, and of theirs that of the domain; a process of the version before does not say it. */
  readonly principal?: string;
  /** What it is called in messages. */
  readonly name: string;
  readonly artifact: string;
  readonly limits: EndpointLimits | null;
  /** Variables in force for it, secrets encrypted as they are stored. */
  readonly variables: readonly {
    readonly name: string;
    readonly value: string | null;
    readonly value_encrypted: string | null;
  }[];
}

/** Starts handlers of an apply, which are kept for the deployments that ask for the same. */
export interface PreparationRequest {
  readonly applyId: string;
  readonly handlers: readonly PreparedHandler[];
}

/** How many handlers are ready, and kept. */
export interface PreparedCounts {
  readonly ready: number;
  readonly kept: number;
}

/** Ends handlers that were prepared for an apply, and that no deployment has asked for. */
export interface Release {
  readonly applyId: string;
}

/** A request of a client that could come. */
export interface RouteQuery {
  readonly host: string;
  readonly method: string;
  /** The path without a query. */
  readonly path: string;
}

/** The response of a handler. */
export interface HandlerResponse {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly bodyBase64: string;
  readonly requestId: string;
  readonly durationMs: number;
  /** Why the gateway answers instead of the handler. */
  readonly error?: string;
}

/** What a version has answered and printed. */
export interface InvokeResult extends HandlerResponse {
  readonly logs: readonly string[];
}

/** An endpoint that a request would hit. */
export interface RouteMatch {
  readonly endpointId: string;
  readonly params: Readonly<Record<string, string>>;
}

/** Where a request would go. */
export interface RouteResult {
  readonly found?: RouteMatch;
  /** What it would hit without that endpoint. */
  readonly next?: RouteMatch;
  /** One that would match if it were not disabled. */
  readonly disabled?: RouteMatch;
  /** The methods that the path has, when it has not the one that was asked for. */
  readonly allow: readonly string[];
  /** Why such a request would be answered with 400. */
  readonly refusal?: string;
}

/** The body of an error response. */
export interface Failure {
  readonly code: string;
  readonly error: string;
}
