/**
 * Requests that two servers in a row could read in different ways, and other odd ones, with what each server answers:
 * `test/golden/requests.json`. Each row is sent to the management API here, and to the gateway, also as HTTP/2, by
 * `rust/front/tests/front/hostile_requests.rs`. The same tables stand in `docs/HTTP.md`.
 */
import { readFileSync } from 'node:fs';
import type { ErrorCode } from '../../src/errors.js';

/** Where a row is sent. */
export interface Place {
  /** Answers GET and HEAD. */
  readonly get: string;
  /** Answers POST, and takes any JSON object. */
  readonly post: string;
  /** The host by which it is reached. */
  readonly host: string;
}

/** What a request gets: it is taken, or refused with an error. */
export type Outcome = 'taken' | ErrorCode;

/** A string, or pieces of one, some of them so many times. `{get}` and the like stand for what a place has. */
type Text = string | readonly (string | readonly [times: number, piece: string])[];

export interface Row {
  readonly input: string;
  /** Its characters are bytes. */
  readonly bytes: Text;
  readonly gateway: Outcome;
  /** What the gateway does instead of answering in HTTP/1. */
  readonly http1?: string;
  /** The same as of the gateway unless given. */
  readonly api?: Outcome;
  /** None where the input does not exist in HTTP/2. */
  readonly http2?: Http2;
}

/**
 * What a request gets in HTTP/2: it is taken, or refused with a status, or its stream is reset with PROTOCOL_ERROR, or
 * its connection is closed. One that is refused for its head is reset instead if its body comes before the answer is
 * sent, where it has not the length that its head says.
 */
export interface Http2 {
  readonly outcome: 'taken' | 'reset' | 'closed' | '400, or reset' | number;
}

export interface Section {
  readonly title: string;
  readonly rows: readonly Row[];
}

interface Table {
  /** Of the errors that rows have. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Must never reach a handler: sent behind what could be read as a body, or as its end. */
  readonly smuggled: string;
  readonly sections: readonly Section[];
  readonly onlyHttp2: readonly { readonly input: string; readonly http2: Http2 }[];
}

export const TABLE = JSON.parse(readFileSync('test/golden/requests.json', 'utf8')) as Table;

/** What a row sends to a place. */
export function bytesOf({ bytes }: Row, place: Place): string {
  const pieces = typeof bytes === 'string' ? [bytes] : bytes;
  const text = pieces
    .map((piece) => (typeof piece === 'string' ? piece : piece[1].repeat(piece[0])))
    .join('')
    .replaceAll('{smuggled}', TABLE.smuggled);
  return Object.entries(place).reduce((filled, [name, value]) => filled.replaceAll(`{${name}}`, value), text);
}
