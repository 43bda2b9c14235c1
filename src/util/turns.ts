/**
 * Turns at something scarce, by owner: with many of them waiting, each gets as much as the others, however much it
 * asks for. One alone may have all. What an owner gets is shared in the same way by its parts, so that many parts give
 * nobody more. Work can take long, and is not interrupted: so an owner that has nothing, and has waited for a while,
 * gets a place beyond the others, and a part of one that has something gets one of fewer.
 */
export interface TurnsOptions {
  /** Places for all together. */
  readonly places: number;
  /** Places beyond them, for owners that have none. */
  readonly beyond: number;
  /** How many of those may be taken by parts that have none, of owners that have some; all others stay for owners. */
  readonly beyondOfParts?: number;
  /** How long one waits for a place beyond, milliseconds. */
  readonly patienceMs?: number;
}

/** Who takes a turn. */
export interface Turn {
  readonly owner: string;
  /** The part of the owner's work that takes it. */
  readonly part?: string;
}

const PATIENCE_MS = 2_000;

interface Part {
  active: number;
  readonly waiting: (() => void)[];
  /** When it waits, and has nothing. */
  timer?: NodeJS.Timeout | undefined;
}

/** Those of its parts that have something, or wait. Which has got something last is the last. */
type OwnerTurns = Map<string, Part>;

export class Turns {
  readonly #options: Required<TurnsOptions>;
  /** Those that have something, or wait. Who has got something last is the last. */
  readonly #owners = new Map<string, OwnerTurns>();
  #active = 0;

  constructor(options: TurnsOptions) {
    this.#options = { patienceMs: PATIENCE_MS, beyondOfParts: 0, ...options };
  }

  /**
   * Does work when it is the turn of its owner.
   * @param signal ends the waiting: then it rejects with the reason, and the work is not done
   */
  async run<T>(taker: string | Turn, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const turn = typeof taker === 'string' ? { owner: taker } : taker;
    await this.#await(turn, signal);
    try {
      return await work();
    } finally {
      this.#end(turn);
    }
  }

  /** How much waits, of all, of one owner or of a part of it. */
  waiting(owner?: string, part?: string): number {
    const owners = owner === undefined ? [...this.#owners.keys()] : [owner];
    const parts = owners.flatMap((name) => [...(this.#owners.get(name) ?? [])]);
    return sum(
      parts.filter(([name]) => part === undefined || name === part).map(([, one]) => one.waiting.length),
    );
  }

  /** How much is being done. */
  get active(): number {
    return this.#active;
  }

  #await(turn: Turn, signal?: AbortSignal): Promise<void> {
    const part = this.#find(turn) ?? { active: 0, waiting: [] };
    this.#keep(turn, part);
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = () => {
        part.waiting.splice(part.waiting.indexOf(begin), 1);
        this.#forgetIdle(turn, part);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      part.waiting.push(begin);
      this.#grant();
      if (part.active === 0 && part.waiting.length === 1) this.#beImpatient(turn, part);
    });
  }

  #find({ owner, part = '' }: Turn): Part | undefined {
    return this.#owners.get(owner)?.get(part);
  }

  #keep({ owner: name, part = '' }: Turn, kept: Part): void {
    const owner: OwnerTurns = this.#owners.get(name) ?? new Map();
    this.#owners.set(name, owner.set(part, kept));
  }

  #forgetIdle({ owner: name, part = '' }: Turn, { active, waiting, timer }: Part): void {
    if (active > 0 || waiting.length > 0) return;
    clearTimeout(timer);
    const owner = this.#owners.get(name);
    owner?.delete(part);
    if (owner?.size === 0) this.#owners.delete(name);
  }

  #end(turn: Turn): void {
    const part = this.#find(turn);
    if (!part) return;
    part.active--;
    this.#active--;
    if (part.active === 0 && part.waiting.length > 0) this.#beImpatient(turn, part);
    this.#forgetIdle(turn, part);
    this.#grant();
  }

  /**
   * Gives free places to those that wait. Next is who has least; of several, who has waited longest since it got
   * something. So it is with the owners, and then with the parts of the owner.
   */
  #grant(): void {
    while (this.#active < this.#options.places) {
      const waiting = [...this.#owners].filter(([, owner]) =>
        parts(owner).some((part) => part.waiting.length > 0),
      );
      const next = leastOf(waiting, activeOf);
      if (!next) return;
      const [owner, found] = next;
      const part = leastOf(
        [...found].filter(([, { waiting }]) => waiting.length > 0),
        ({ active }) => active,
      );
      if (!part) return;
      this.#begin({ owner, part: part[0] }, part[1]);
    }
  }

  #begin(turn: Turn, part: Part): void {
    clearTimeout(part.timer);
    part.timer = undefined;
    part.active++;
    this.#active++;
    const owner = this.#owners.get(turn.owner);
    // The part and the owner go to the end of their lists.
    owner?.delete(turn.part ?? '');
    this.#owners.delete(turn.owner);
    this.#owners.set(turn.owner, owner ?? new Map());
    this.#keep(turn, part);
    part.waiting.shift()?.();
  }

  #beImpatient(turn: Turn, part: Part): void {
    const { places, beyond, beyondOfParts, patienceMs } = this.#options;
    clearTimeout(part.timer);
    part.timer = setTimeout(() => {
      if (part.active > 0 || part.waiting.length === 0) return;
      const hasNothing = activeOf(this.#owners.get(turn.owner) ?? new Map()) === 0;
      if (this.#active < places + (hasNothing ? beyond : beyondOfParts)) this.#begin(turn, part);
      else this.#beImpatient(turn, part);
    }, patienceMs);
  }
}

function parts(owner: OwnerTurns): Part[] {
  return [...owner.values()];
}

function activeOf(owner: OwnerTurns): number {
  return sum(parts(owner).map(({ active }) => active));
}

/** The first of those that have least. */
function leastOf<T>(all: readonly [string, T][], active: (one: T) => number): [string, T] | undefined {
  const [first, ...others] = all;
  if (!first) return undefined;
  return others.reduce((best, one) => (active(one[1]) < active(best[1]) ? one : best), first);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
