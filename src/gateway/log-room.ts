/**
 * Shares out what the entries of one hour may take. When it is half full, endpoints that have written more than others
 * write no more; so a handler that talks without end silences itself, and nobody else. What is left out is counted, and
 * becomes an entry itself: at once, and then every minute.
 */
import { CROWDED, isImportant, type LogEntry } from '../model/log-entry.js';
import type { Logger } from '../util/log.js';
import { lengthOf, noteOf } from './log-buffer.js';

/** From this part of its size on an hour takes nothing but errors, of each endpoint as many as its share of them. */
const NEARLY_FULL = 0.75;
/**
 * What endpoints may write in an hour that is crowded, all together: of errors as much again. It is half of what there
 * is, so that there is room for an endpoint that comes later.
 */
const SHARED = 0.125;
const NOTE_EVERY_MS = 60_000;

/** What an endpoint has written in this hour, and has not. */
class EndpointRoom {
  characters = 0;
  importantCharacters = 0;
  leftOut = 0;
  notedAt = Number.NEGATIVE_INFINITY;
}

export class LogRoom {
  readonly #hourBytes: number;
  readonly #log: Logger;
  #hour = 0;
  #bytes = 0;
  #gateways = 1;
  #endpoints = new Map<string, EndpointRoom>();
  #hasWarned = false;

  /** @param hourBytes what the entries of an hour may take, those of all gateways */
  constructor(hourBytes: number, log: Logger) {
    this.#hourBytes = hourBytes;
    this.#log = log;
  }

  /** Says what an hour has by now, and how many gateways write it. @returns what the hour before it has left out */
  measured(hour: number, bytes: number, gateways: number): LogEntry[] {
    this.#bytes = bytes;
    this.#gateways = Math.max(gateways, 1);
    if (hour === this.#hour) return [];
    const left = this.takeNotes(Number.POSITIVE_INFINITY);
    this.#hour = hour;
    this.#endpoints = new Map();
    this.#hasWarned = false;
    return left;
  }

  /** Whether there is room for an entry; if not, it counts as left out. */
  admits(entry: LogEntry): boolean {
    const endpoint = this.#endpoints.get(entry.endpointId) ?? new EndpointRoom();
    this.#endpoints.set(entry.endpointId, endpoint);
    const characters = lengthOf(entry);
    const filled = this.#bytes / this.#hourBytes;
    const share = (SHARED * this.#hourBytes) / (this.#endpoints.size * this.#gateways);
    const written = isImportant(entry) ? 'importantCharacters' : 'characters';
    // Whoever writes an entry chooses its level: errors have a share of their own, and no more.
    const end = isImportant(entry) ? 1 : NEARLY_FULL;
    if (filled < CROWDED || (filled < end && endpoint[written] + characters <= share)) {
      endpoint[written] += characters;
      this.#bytes += characters;
      return true;
    }
    endpoint.leftOut++;
    this.#warn();
    return false;
  }

  /** What was left out and is to be said now. */
  takeNotes(now: number): LogEntry[] {
    const notes: LogEntry[] = [];
    for (const [endpointId, endpoint] of this.#endpoints) {
      const { leftOut, notedAt } = endpoint;
      if (leftOut === 0 || now - notedAt < NOTE_EVERY_MS) continue;
      const message = `${leftOut} entries were left out: the log of this hour has no more room for them (LOG_RETENTION_MB)`;
      notes.push(noteOf(endpointId, message, { left_out: leftOut }));
      endpoint.leftOut = 0;
      endpoint.notedAt = now;
    }
    return notes;
  }

  #warn(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const megabytes = Math.round(this.#bytes / 1024 / 1024);
    this.#log.warn(
      { megabytes, hour: new Date(this.#hour).toISOString() },
      'the log of this hour is getting full: entries of endpoints that say much are left out; raise LOG_RETENTION_MB',
    );
  }
}
