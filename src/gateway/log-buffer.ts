/**
 * Entries of the log that wait to be written: so many and no more. Of those beyond it is counted how many each endpoint
 * has lost, which becomes an entry itself.
 */
import { isImportant, type LogEntry } from '../model/log-entry.js';

const MAX_ENTRIES = 20_000;
const MAX_CHARACTERS = 16 * 1024 * 1024;
/** Errors have more room: nothing else takes their place. */
const ROOM_OF_ERRORS = 1.25;
/** What an entry takes beside its texts, about. */
const OTHER_CHARACTERS = 200;

export class LogBuffer {
  readonly #entries: LogEntry[] = [];
  #characters = 0;
  /** By endpoint. */
  readonly #lost = new Map<string, number>();

  /** Whether there is nothing to say, not even that something was lost. */
  get isEmpty(): boolean {
    return this.#entries.length === 0 && this.#lost.size === 0;
  }

  get size(): number {
    return this.#entries.length;
  }

  add(entry: LogEntry): void {
    const characters = lengthOf(entry);
    const room = isImportant(entry) ? ROOM_OF_ERRORS : 1;
    if (this.#entries.length >= MAX_ENTRIES * room || this.#characters + characters > MAX_CHARACTERS * room) {
      this.lose(entry);
      return;
    }
    this.#characters += characters;
    this.#entries.push(entry);
  }

  /** Counts an entry as lost. */
  lose({ endpointId }: LogEntry): void {
    this.#lost.set(endpointId, (this.#lost.get(endpointId) ?? 0) + 1);
  }

  /** Takes the oldest entries; behind the last one, what was lost. */
  take(limit: number): LogEntry[] {
    const taken = this.#entries.splice(0, limit);
    for (const entry of taken) this.#characters -= lengthOf(entry);
    return this.#entries.length === 0 ? [...taken, ...this.#takeLost()] : taken;
  }

  #takeLost(): LogEntry[] {
    const notes = [...this.#lost].map(([endpointId, lost]) =>
      noteOf(endpointId, `${lost} entries were lost: PostgreSQL did not take them in time`, { lost }),
    );
    this.#lost.clear();
    return notes;
  }
}

/** What the gateway itself says of an endpoint's log. */
export function noteOf(endpointId: string, message: string, fields: Record<string, number>): LogEntry {
  return {
    ...{ at: Date.now(), kind: 'output', level: 'warn', endpointId, version: null, requestId: null, message },
    ...{ fields: { target: 'gateway', ...fields }, request: null },
  };
}

/** About as many bytes as it takes. */
export function lengthOf({ message, fields, request }: LogEntry): number {
  let characters = OTHER_CHARACTERS + message.length;
  if (request) characters += request.path.length + request.route.length;
  for (const [key, value] of Object.entries(fields ?? {})) characters += key.length + String(value).length;
  return characters;
}
