/**
 * Shares out what the entries of one hour may take. When it is half full, there is a reserve: a domain may take as much
 * of that as it leaves to all others, and an endpoint as much as it leaves to the others of its domain. So a handler
 * that talks without end silences itself, a domain with many of them takes half of the reserve, and whoever comes later
 * finds room. What is left out is counted, and becomes an entry itself: at once, and then every minute.
 */
import { CROWDED, isImportant, type LogEntry } from '../../model/log-entry.js';
import type { Logger } from '../../util/log.js';
import { lengthOf, noteOf } from './log-buffer.js';

/** From this part of its size on an hour takes nothing but errors, as many as their reserve. */
const NEARLY_FULL = 0.75;
/** What all together may write in an hour that is crowded: of errors as much again. */
const RESERVE = 0.25;
const NOTE_EVERY_MS = 60_000;

/** Characters of errors and such, and of all else. */
class WrittenCharacters {
  important = 0;
  others = 0;
}

/** What an endpoint has written in this hour, and has not. */
class EndpointRoom {
  readonly written = new WrittenCharacters();
  leftOut = 0;
  notedAt = Number.NEGATIVE_INFINITY;
}

export class LogRoom {
  readonly #hourBytes: number;
  readonly #log: Logger;
  readonly #domainOf: (endpointId: string) => string;
  #hour = 0;
  #bytes = 0;
  #gateways = 1;
  #endpoints = new Map<string, EndpointRoom>();
  /** How much of the reserve is used: by all, and by each domain. */
  #used = new WrittenCharacters();
  #usedByDomain = new Map<string, WrittenCharacters>();
  #hasWarned = false;

  /**
   * @param hourBytes what the entries of an hour may take, those of all gateways
   * @param domainOf the domain of an endpoint: hosts without one share one, and so do those that are not known
   */
  constructor(hourBytes: number, log: Logger, domainOf: (endpointId: string) => string) {
    this.#hourBytes = hourBytes;
    this.#log = log;
    this.#domainOf = domainOf;
  }

  /** Says what an hour has by now, and how many gateways write it. @returns what the hour before it has left out */
  measured(hour: number, bytes: number, gateways: number): LogEntry[] {
    this.#bytes = bytes;
    this.#gateways = Math.max(gateways, 1);
    if (hour === this.#hour) return [];
    const left = this.takeNotes(Number.POSITIVE_INFINITY);
    this.#hour = hour;
    this.#endpoints = new Map();
    this.#used = new WrittenCharacters();
    this.#usedByDomain = new Map();
    this.#hasWarned = false;
    return left;
  }

  /** Whether there is room for an entry; if not, it counts as left out. */
  admits(entry: LogEntry): boolean {
    const endpoint = this.#endpoints.get(entry.endpointId) ?? new EndpointRoom();
    this.#endpoints.set(entry.endpointId, endpoint);
    const characters = lengthOf(entry);
    const filled = this.#bytes / this.#hourBytes;
    // Whoever writes an entry chooses its level: errors have a reserve of their own, and no more.
    const [kind, end] = isImportant(entry) ? (['important', 1] as const) : (['others', NEARLY_FULL] as const);
    if (filled < CROWDED || (filled < end && this.#takeOfReserve(entry, endpoint, kind))) {
      endpoint.written[kind] += characters;
      this.#bytes += characters;
      return true;
    }
    endpoint.leftOut++;
    this.#warn();
    return false;
  }

  /** What an endpoint has written before counts for it alone, so that its domain has a share for the others. */
  #takeOfReserve(entry: LogEntry, endpoint: EndpointRoom, kind: keyof WrittenCharacters): boolean {
    const characters = lengthOf(entry);
    const name = this.#domainOf(entry.endpointId);
    const domain = this.#usedByDomain.get(name) ?? new WrittenCharacters();
    const reserve = (RESERVE * this.#hourBytes) / this.#gateways;
    const leftToAll = reserve - this.#used[kind] - characters;
    const leftToDomain = leftToAll - domain[kind] - characters;
    if (endpoint.written[kind] + characters > leftToDomain) return false;
    this.#usedByDomain.set(name, domain);
    domain[kind] += characters;
    this.#used[kind] += characters;
    return true;
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
