/** What goes out of traces: the requests of a gateway, and the calls of services that handlers make for them. */
import type { Registry } from 'prom-client';
import type { Config } from '../../config.js';
import type { RequestEntry, Sampling } from '../../contracts/front.js';
import type { Logger } from '../../util/log.js';
import type { HandlerEntry } from '../log/endpoint-log.js';

/** Takes parts of traces; nothing waits for it. */
export interface Traces {
  /** A request, if it is one of a trace that is exported. */
  request(finished: RequestEntry): void;
  /** A call of a service. */
  call(call: ServiceCall): void;
  /** So many parts were not recorded. */
  lost(spans: number): void;
  stop(): Promise<void>;
}

/** A call of a service that a handler has made. */
export interface ServiceCall {
  readonly endpointId: string;
  readonly version: number | null;
  readonly requestId: string | null;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly pool: string;
  readonly operation: string;
  /** The kind of its error. */
  readonly error: string | undefined;
  readonly ms: number;
  /** Microseconds since 1970. */
  readonly endedUs: number;
  /** So many were not recorded before it. */
  readonly lostSpans: number;
}

type TraceConfig = Pick<
  Config,
  | 'OTEL_EXPORTER_OTLP_ENDPOINT'
  | 'OTEL_EXPORTER_OTLP_HEADERS'
  | 'OTEL_SERVICE_NAME'
  | 'OTEL_TRACES_SAMPLER'
  | 'OTEL_TRACES_SAMPLER_ARG'
>;

/** Which traces go out; null: none. */
export function samplingOf(config: TraceConfig): Sampling | null {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER: sampler } = config;
  if (endpoint === undefined) return null;
  const ratios = { always_on: 1, always_off: 0, traceidratio: config.OTEL_TRACES_SAMPLER_ARG };
  const own = sampler.replace('parentbased_', '') as keyof typeof ratios;
  return { parentBased: sampler.startsWith('parentbased_'), ratio: ratios[own] };
}

/** Opens the way out, if there is one. Its libraries are loaded only then: they take memory and time. */
export async function openTraces(
  config: TraceConfig,
  instance: string,
  registry: Registry,
  log: Logger,
): Promise<Traces | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers } = config;
  if (endpoint === undefined) return undefined;
  const { OtlpTraces } = await import('./otlp-traces.js');
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  return new OtlpTraces({ url, headers, service: config.OTEL_SERVICE_NAME, instance, registry, log });
}

const LONGEST_MS = 86_400_000;
const MAX_CHARACTERS = 256;

/**
 * Reads what the SDK records of a call that is part of an exported trace. The handler could have written it as well, so
 * nothing about it is certain.
 */
export function serviceCallOf(
  endpointId: string,
  version: number | null,
  { fields, requestId }: HandlerEntry,
): ServiceCall | undefined {
  const { target, trace_id, span_id, parent_id, pool, operation, error, ...numbers } = fields ?? {};
  const { duration_ms: ms, ended_us: endedUs, lost_spans: lostSpans } = numbers;
  if (target !== 'service' || !isId(trace_id, 32) || !isId(span_id, 16) || !isId(parent_id, 16))
    return undefined;
  if (typeof pool !== 'string' || typeof operation !== 'string') return undefined;
  if (!isWithin(ms, 0, LONGEST_MS)) return undefined;
  const now = Date.now();
  if (!isWithin(endedUs, (now - LONGEST_MS) * 1_000, (now + LONGEST_MS) * 1_000)) return undefined;
  return {
    ...{ endpointId, version, requestId, traceId: trace_id, spanId: span_id, parentId: parent_id, ms },
    ...{ pool: pool.slice(0, MAX_CHARACTERS), operation: operation.slice(0, MAX_CHARACTERS) },
    error: typeof error === 'string' ? error.slice(0, MAX_CHARACTERS) : undefined,
    endedUs: Math.round(endedUs),
    lostSpans: isWithin(lostSpans, 0, Number.MAX_SAFE_INTEGER) ? Math.round(lostSpans) : 0,
  };
}

function isId(value: unknown, digits: number): value is string {
  return typeof value === 'string' && value.length === digits && /^(?!0+$)[0-9a-f]+$/.test(value);
}

function isWithin(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && value >= min && value <= max;
}
