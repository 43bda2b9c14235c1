/**
 * Entries of the log that wait to be written: so many and no more. When they have no room, domains share it, and what a
 * domain has its endpoints share: who has most loses their newest. It is counted how many each endpoint has lost, which
 * becomes an entry itself.
 */
import { isImportant, type LogEntry } from '../../model/log-entry.js';

/** What an entry takes beside its texts, about. */
const OTHER_CHARACTERS = 200;
/** An entry counts as so many characters at least: so the room says how many there can be, too. */
const LEAST_CHARACTERS = 840;
const ROOM = 20_000 * LEAST_CHARACTERS;
/** Errors have room of their own: nothing else takes their place, and they take nobody's. */
const ROOM_OF_ERRORS = 10_000 * LEAST_CHARACTERS;

/** What waits of an endpoint. */
class WaitingEndpoint {
  characters = 0;
  entries = 0;
  /** The numbers of its entries, the newest last. In front there may be some that have been taken. */
  numbers: number[] = [];
}

/** What waits of a domain. */
class WaitingDomain {
  characters = 0;
  readonly endpoints = new Map<string, WaitingEndpoint>();
}

interface WaitingEntry {
  readonly entry: LogEntry;
  /** The domain as it was when the entry came: the endpoint may be gone by now. */
  readonly domain: string;
}

/** Entries that share room. */
class SharedRoom {
  readonly #room: number;
  #characters = 0;
  readonly #domains = new Map<string, WaitingDomain>();

  constructor(room: number) {
    this.#room = room;
  }

  isFullFor(entry: LogEntry): boolean {
    return this.#characters + costOf(entry) > this.#room;
  }

  add(number: number, { entry, domain: name }: WaitingEntry): void {
    const domain = this.#domains.get(name) ?? new WaitingDomain();
    this.#domains.set(name, domain);
    const endpoint = domain.endpoints.get(entry.endpointId) ?? new WaitingEndpoint();
    domain.endpoints.set(entry.endpointId, endpoint);
    endpoint.numbers.push(number);
    endpoint.entries++;
    this.#count(domain, endpoint, costOf(entry));
  }

  remove(number: number, { entry, domain: name }: WaitingEntry): void {
    const domain = this.#domains.get(name);
    const endpoint = domain?.endpoints.get(entry.endpointId);
    if (!domain || !endpoint) return;
    endpoint.entries--;
    this.#count(domain, endpoint, -costOf(entry));
    if (endpoint.numbers.at(-1) === number) endpoint.numbers.pop();
    // Those that have been taken are the oldest.
    else if (endpoint.numbers.length > 2 * endpoint.entries)
      endpoint.numbers = endpoint.numbers.slice(-endpoint.entries);
    if (endpoint.entries === 0) domain.endpoints.delete(entry.endpointId);
    if (domain.endpoints.size === 0) this.#domains.delete(name);
  }

  /** Which entry is to make way for a new one; undefined: that one has to. */
  inTheWayOf({ entry, domain: name }: WaitingEntry): number | undefined {
    const domain = whoGivesWay(this.#domains, name, this.#room);
    const own = this.#domains.get(name);
    if (!domain) return undefined;
    const endpoint =
      domain === own
        ? whoGivesWay(domain.endpoints, entry.endpointId, domain.characters)
        : withMost(domain.endpoints);
    const isOwn = domain === own && endpoint === own.endpoints.get(entry.endpointId);
    return isOwn ? undefined : endpoint?.numbers.at(-1);
  }

  #count(domain: WaitingDomain, endpoint: WaitingEndpoint, characters: number): void {
    this.#characters += characters;
    domain.characters += characters;
    endpoint.characters += characters;
  }
}

export class LogBuffer {
  readonly #domainOf: (endpointId: string) => string;
  /** Entries by number, which counts them: the oldest first. */
  readonly #entries = new Map<number, WaitingEntry>();
  #lastNumber = 0;
  readonly #rooms = { important: new SharedRoom(ROOM_OF_ERRORS), others: new SharedRoom(ROOM) };
  /** How many entries were lost, by endpoint. */
  readonly #lost = new Map<string, number>();

  /** @param domainOf the domain of an endpoint; those that are not known share one */
  constructor(domainOf: (endpointId: string) => string) {
    this.#domainOf = domainOf;
  }

  /** Whether there is nothing to say, not even that something was lost. */
  get isEmpty(): boolean {
    return this.#entries.size === 0 && this.#lost.size === 0;
  }

  get size(): number {
    return this.#entries.size;
  }

  add(entry: LogEntry): void {
    const waiting = { entry, domain: this.#domainOf(entry.endpointId) };
    const room = this.#roomOf(entry);
    while (room.isFullFor(entry)) {
      const number = room.inTheWayOf(waiting);
      if (number === undefined) {
        this.lose(entry);
        return;
      }
      const other = this.#remove(number);
      if (other) this.lose(other);
    }
    room.add(++this.#lastNumber, waiting);
    this.#entries.set(this.#lastNumber, waiting);
  }

  /** Counts an entry as lost. */
  lose({ endpointId }: LogEntry): void {
    this.#lost.set(endpointId, (this.#lost.get(endpointId) ?? 0) + 1);
  }

  /** Takes the oldest entries; behind the last one, what was lost. */
  take(limit: number): LogEntry[] {
    const entries: LogEntry[] = [];
    for (const number of this.#entries.keys()) {
      if (entries.length === limit) break;
      const entry = this.#remove(number);
      if (entry) entries.push(entry);
    }
    return this.#entries.size === 0 ? [...entries, ...this.#takeLost()] : entries;
  }

  #remove(number: number): LogEntry | undefined {
    const waiting = this.#entries.get(number);
    if (!waiting) return undefined;
    this.#entries.delete(number);
    this.#roomOf(waiting.entry).remove(number, waiting);
    return waiting.entry;
  }

  #roomOf(entry: LogEntry): SharedRoom {
    return isImportant(entry) ? this.#rooms.important : this.#rooms.others;
  }

  #takeLost(): LogEntry[] {
    const notes = [...this.#lost].map(([endpointId, lost]) =>
      noteOf(endpointId, `${lost} entries were lost: PostgreSQL did not take them in time`, { lost }),
    );
    this.#lost.clear();
    return notes;
  }
}

type CharacterCount = { readonly characters: number };

/** Who gives way: whoever asks, with an equal share or more, which is quickly known; else whoever has most. */
function whoGivesWay<T extends CharacterCount>(
  all: ReadonlyMap<string, T>,
  asks: string,
  room: number,
): T | undefined {
  const own = all.get(asks);
  return own && own.characters >= room / all.size ? own : withMost(all);
}

function withMost<T extends CharacterCount>(all: ReadonlyMap<string, T>): T | undefined {
  let most: T | undefined;
  for (const one of all.values()) if (!most || one.characters > most.characters) most = one;
  return most;
}

function costOf(entry: LogEntry): number {
  return Math.max(LEAST_CHARACTERS, lengthOf(entry));
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
