/**
 * Exports traces by OTLP, with the libraries of OpenTelemetry. What waits is bounded; what the receiver does not take
 * is lost, and counted.
 */
import { hostname } from 'node:os';
import {
  type Attributes,
  type HrTime,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { Counter, type Registry } from 'prom-client';
import type { RequestEntry } from '../../contracts/front.js';
import { toError } from '../../errors.js';
import type { Logger } from '../../util/log.js';
import { PeriodicTask } from '../../util/periodic-task.js';
import { VERSION } from '../../util/version.js';
import type { ServiceCall, Traces } from './traces.js';

const EXPORT_EVERY_MS = 1_000;
const MAX_WAITING = 8_192;
const MAX_BATCH = 512;
const TIMEOUT_MS = 10_000;
const WARN_EVERY_MS = 60_000;

export interface OtlpOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The name of the service in traces. */
  readonly service: string;
  /** The id of this gateway. */
  readonly instance: string;
  readonly registry: Registry;
  readonly log: Logger;
}

/** A part of a trace before it has a form. */
interface Part {
  readonly name: string;
  readonly kind: SpanKind;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly ms: number;
  readonly endedUs: number;
  /** Why it has failed. */
  readonly error: string | undefined;
  readonly attributes: Attributes;
}

export class OtlpTraces implements Traces {
  readonly #exporter: OTLPTraceExporter;
  readonly #resource: Resource;
  readonly #log: Logger;
  readonly #exporting: PeriodicTask;
  readonly #spans: Counter<'outcome'>;
  #waiting: ReadableSpan[] = [];
  #lost = 0;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor({ url, headers, service, instance, registry, log }: OtlpOptions) {
    this.#log = log;
    // All that it would read from the environment by itself is given. An export counts as running until shortly after
    // its callback, in which the next one begins: there are two for that moment.
    this.#exporter = new OTLPTraceExporter({
      ...{ url, headers: { ...headers }, timeoutMillis: TIMEOUT_MS, concurrencyLimit: 2 },
    });
    this.#resource = resourceFromAttributes({
      'service.name': service,
      'service.version': VERSION,
      'service.instance.id': instance,
      'host.name': hostname(),
    });
    this.#spans = new Counter({
      name: 'edge_gateway_spans_total',
      help: 'Parts of traces that were exported by OTLP, and that were lost',
      labelNames: ['outcome'],
      registers: [registry],
    });
    this.#exporting = new PeriodicTask(
      EXPORT_EVERY_MS,
      () => this.#export(),
      (error) => this.#warn(error),
    );
  }

  request(finished: RequestEntry): void {
    const { span, traceId, method, route, path, scheme, status, clientIp, endpointId, requestId } = finished;
    if (!span?.isRecorded) return;
    this.#add({
      ...{ name: `${method} ${route}`, kind: SpanKind.SERVER, traceId, spanId: span.id },
      ...{ parentId: span.parentId, ms: finished.ms, endedUs: span.endedUs },
      error: status >= 500 ? (finished.error ?? `status ${status}`) : undefined,
      attributes: {
        'http.request.method': method,
        'http.route': route,
        'url.path': path,
        'url.scheme': scheme,
        'http.response.status_code': status,
        'http.response.body.size': finished.bytes,
        'client.address': clientIp,
        ...(status >= 500 && { 'error.type': String(status) }),
        ...ofEndpoint(endpointId, finished.version ?? null, requestId),
      },
    });
  }

  call(call: ServiceCall): void {
    const { pool, operation, error, endpointId, version, requestId } = call;
    this.lost(call.lostSpans);
    this.#add({
      ...{ name: `${operation} ${pool}`, kind: SpanKind.CLIENT, traceId: call.traceId, spanId: call.spanId },
      ...{ parentId: call.parentId, ms: call.ms, endedUs: call.endedUs, error },
      attributes: {
        'edge.pool': pool,
        'edge.operation': operation,
        ...(error !== undefined && { 'error.type': error }),
        ...ofEndpoint(endpointId, version, requestId),
      },
    });
  }

  lost(spans: number): void {
    if (spans === 0) return;
    this.#lost += spans;
    this.#spans.inc({ outcome: 'lost' }, spans);
    this.#warn();
  }

  /** Exports what there is, if the receiver takes it. */
  async stop(): Promise<void> {
    await this.#exporting.stop();
    await this.#export().catch((thrown: unknown) => this.#warn(toError(thrown)));
    await this.#exporter.shutdown();
  }

  #add({ name, kind, traceId, spanId, parentId, ms, endedUs, error, attributes }: Part): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.lost(1);
      return;
    }
    const contextOf = (id: string): SpanContext => ({ traceId, spanId: id, traceFlags: TraceFlags.SAMPLED });
    const context = contextOf(spanId);
    this.#waiting.push({
      ...{ name, kind, attributes, resource: this.#resource, ended: true },
      spanContext: () => context,
      ...(parentId !== undefined && { parentSpanContext: { ...contextOf(parentId), isRemote: true } }),
      startTime: timeOf(endedUs - Math.round(ms * 1_000)),
      endTime: timeOf(endedUs),
      duration: timeOf(Math.round(ms * 1_000)),
      status:
        error === undefined ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: error },
      instrumentationScope: { name: 'edge-gateway', version: VERSION },
      ...{ links: [], events: [], droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 },
    });
  }

  async #export(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, MAX_BATCH);
      this.#waiting = this.#waiting.slice(MAX_BATCH);
      const error = await new Promise<Error | undefined>((resolve) => {
        this.#exporter.export(batch, ({ code, error: failure }) =>
          resolve(code === 0 ? undefined : (failure ?? new Error('the receiver has not taken them'))),
        );
      });
      if (error) {
        this.lost(batch.length);
        throw error;
      }
      this.#spans.inc({ outcome: 'exported' }, batch.length);
    }
  }

  #warn(error?: Error): void {
    const now = performance.now();
    if (now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    this.#log.warn(
      { lost: this.#lost, ...(error && { err: error }) },
      'parts of traces were lost: OTEL_EXPORTER_OTLP_ENDPOINT does not take them, or not as many',
    );
    this.#lost = 0;
  }
}

function ofEndpoint(endpointId: string, version: number | null, requestId: string | null): Attributes {
  return {
    'edge.endpoint_id': endpointId,
    ...(version !== null && { 'edge.version': version }),
    ...(requestId !== null && { 'edge.request_id': requestId }),
  };
}

function timeOf(microseconds: number): HrTime {
  return [Math.floor(microseconds / 1e6), Math.round(microseconds % 1e6) * 1_000];
}
