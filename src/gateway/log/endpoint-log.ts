/** Makes entries of the log, and parts of traces, of what the front and handlers tell. */
import type { RequestEntry } from '../../contracts/front.js';
import type { Level, LogEntry, LogFields } from '../../model/log-entry.js';
import type { Logger } from '../../util/log.js';
import { isForTraceOnly } from '../handler-records.js';
import { serviceCallOf, type Traces } from '../telemetry/traces.js';
import { noteOf } from './log-buffer.js';

/** What a handler said. */
export interface HandlerEntry {
  readonly level: Level;
  readonly message: string;
  readonly requestId: string | null;
  readonly fields: LogFields | null;
}

export class EndpointLog {
  readonly #writer: { add(entry: LogEntry): void };
  /** The logger for requests, at debug. */
  readonly #log: Logger;
  readonly #traces: Traces | undefined;

  constructor(writer: { add(entry: LogEntry): void }, log: Logger, traces?: Traces) {
    this.#writer = writer;
    this.#log = log;
    this.#traces = traces;
  }

  /** The front has finished a request. */
  finished(finished: RequestEntry): void {
    const { endpointId, requestId, traceId, method, route, path, status, ms, bytes, clientIp, scheme } =
      finished;
    this.#log.debug(
      {
        request_id: requestId,
        endpoint_id: endpointId,
        method,
        route,
        client_ip: clientIp,
        scheme,
        status,
        ms,
      },
      'request',
    );
    this.#traces?.request(finished);
    if (!finished.isKept) return;
    this.#writer.add({
      at: Date.now(),
      kind: 'request',
      level: status >= 500 ? 'error' : 'info',
      endpointId,
      version: finished.version ?? null,
      requestId,
      message: finished.error ?? '',
      fields: fieldsOf(finished),
      request: { method, route, path, status, durationMs: ms, bytes, clientIp, traceId },
    });
  }

  /** So many requests of an endpoint have no entry, of which so many have failed. */
  leftOut(endpointId: string, requests: number, failed: number): void {
    const more = `${requests} more requests have no entry (LOG_REQUESTS_PER_SECOND)`;
    const message =
      failed === 0 ? more : `${more}, ${failed} of them failed: there were more than the gateway could note`;
    this.#writer.add({
      ...noteOf(endpointId, message, { left_out: requests, ...(failed > 0 && { failed }) }),
      kind: 'request',
      level: failed === 0 ? 'info' : 'error',
    });
  }

  /** A handler has said something. @param version that it runs */
  output(endpointId: string, version: number | null, said: HandlerEntry): void {
    const call = this.#traces && serviceCallOf(endpointId, version, said);
    if (call) this.#traces?.call(call);
    if (isForTraceOnly(said)) return;
    const fields = said.fields && withoutTimes(said.fields);
    this.#writer.add({ at: Date.now(), kind: 'output', endpointId, version, ...said, fields, request: null });
  }
}

/** What an entry says beyond what all have. */
function fieldsOf({ span, policy, subject, keyLabel, reported }: RequestEntry): LogFields | null {
  const fields = {
    ...(span && { span_id: span.id }),
    ...(span?.parentId !== undefined && { parent_id: span.parentId }),
    ...(policy !== undefined && { policy }),
    ...(subject !== undefined && { subject }),
    ...(keyLabel !== undefined && { key_label: keyLabel }),
    ...(reported !== undefined && { reported }),
  };
  return Object.keys(fields).length > 0 ? fields : null;
}

/** What only exported traces need. */
function withoutTimes({ ended_us, lost_spans, ...others }: LogFields): LogFields {
  return others;
}
