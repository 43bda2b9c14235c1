/**
 * The records that the SDK writes to a stream of its own: one JSON text to a line. The other end is
 * `rust/sdk/core/src/runtime/records.rs`. The handler has the stream too, so nothing about a line is certain.
 */

import { LEVEL_NAMES, type Level } from '../model/log-entry.js';
import { isObject } from '../util/json-object.js';
import type { HandlerEntry } from './log/endpoint-log.js';

/** What an entry keeps of a text that says where it is from. */
const MAX_CHARACTERS = 256;
/** The SDK writes no more. */
const MAX_FIELDS = 40;

/** Reads a line; undefined when it is no record. */
export function readRecord(line: string): HandlerEntry | undefined {
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof record !== 'object' || record === null) return undefined;
  const { level, target, message, request_id, fields } = record as Record<string, unknown>;
  if (!isLevel(level) || typeof message !== 'string' || typeof target !== 'string') return undefined;
  return {
    level,
    message,
    requestId: typeof request_id === 'string' ? request_id.slice(0, MAX_CHARACTERS) : null,
    fields: { ...(isObject(fields) && valuesOf(fields)), target: target.slice(0, MAX_CHARACTERS) },
  };
}

/** Without what the SDK does not write: nested values can be too deep to be stored. */
function valuesOf(fields: Record<string, unknown>): Record<string, string | number | boolean> {
  const values = Object.entries(fields).filter((pair): pair is [string, string | number | boolean] =>
    ['string', 'number', 'boolean'].includes(typeof pair[1]),
  );
  return Object.fromEntries(values.slice(0, MAX_FIELDS));
}

/** Whether it is of a trace only: a call of a service that was neither slow nor failed. */
export function isForTraceOnly({ level, fields }: HandlerEntry): boolean {
  return level === 'trace' && fields?.['target'] === 'service' && fields['ended_us'] !== undefined;
}

/** A record as a line of text. */
export function textOf({ level, message, requestId, fields }: HandlerEntry): string {
  const mark = requestId === null ? '' : `[request ${requestId}] `;
  const { target, place, ...others } = fields ?? {};
  if (target === 'panic')
    return `${mark}panicked${typeof place === 'string' ? ` at ${place}` : ''}: ${message}`;
  if (target === 'sdk') return `${mark}${message}`;
  const pairs = Object.entries(others).map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
  return `${mark}${level.toUpperCase()} ${target}: ${message}${pairs.join('')}`;
}

function isLevel(value: unknown): value is Level {
  return LEVEL_NAMES.includes(value as Level);
}
