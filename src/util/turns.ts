/**
 * Turns at something scarce, by owner: with many of them waiting, each gets as much as the others, however much it asks
 * for. One alone may have all. Work can take long, and is not interrupted: so an owner that has nothing, and has waited
 * for a while, gets a place beyond the others.
 */
export interface TurnsOptions {
  /** Places for all together. */
  readonly places: number;
  /** Places beyond them, for owners that have none. */
  readonly beyond: number;
  /** How long such an owner waits for one, milliseconds. */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 2_000;

interface Owner {
  active: number;
  readonly waiting: (() => void)[];
  /** When it waits, and has nothing. */
  timer?: NodeJS.Timeout | undefined;
}

export class Turns {
  readonly #options: Required<TurnsOptions>;
  /** Those that have something, or wait. Who has got something last is the last. */
  readonly #owners = new Map<string, Owner>();
  #active = 0;

  constructor(options: TurnsOptions) {
    this.#options = { patienceMs: PATIENCE_MS, ...options };
  }

  /**
   * Does work when it is the turn of its owner.
   * @param signal ends the waiting: then it rejects with the reason, and the work is not done
   */
  async run<T>(owner: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    await this.#turnOf(owner, signal);
    try {
      return await work();
    } finally {
      this.#end(owner);
    }
  }

  /** How much waits, of all or of one owner. */
  waiting(owner?: string): number {
    if (owner !== undefined) return this.#owners.get(owner)?.waiting.length ?? 0;
    return [...this.#owners.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** How much is being done. */
  get active(): number {
    return this.#active;
  }

  #turnOf(name: string, signal?: AbortSignal): Promise<void> {
    const owner = this.#owners.get(name) ?? { active: 0, waiting: [] };
    this.#owners.set(name, owner);
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = () => {
        owner.waiting.splice(owner.waiting.indexOf(begin), 1);
        this.#forgetIdle(name, owner);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      owner.waiting.push(begin);
      this.#grant();
      if (owner.active === 0 && owner.waiting.length === 1) this.#beImpatient(name, owner);
    });
  }

  #forgetIdle(name: string, owner: Owner): void {
    if (owner.active > 0 || owner.waiting.length > 0) return;
    clearTimeout(owner.timer);
    this.#owners.delete(name);
  }

  #end(name: string): void {
    const owner = this.#owners.get(name);
    if (!owner) return;
    owner.active--;
    this.#active--;
    if (owner.active === 0 && owner.waiting.length > 0) this.#beImpatient(name, owner);
    this.#forgetIdle(name, owner);
    this.#grant();
  }

  /** Of those that wait, who has least is next; of several, who has waited longest since it got something. */
  #grant(): void {
    while (this.#active < this.#options.places) {
      const waiting = [...this.#owners].filter(([, owner]) => owner.waiting.length > 0);
      const [first, ...others] = waiting;
      if (!first) return;
      const [name, owner] = others.reduce(
        (best, one) => (one[1].active < best[1].active ? one : best),
        first,
      );
      this.#begin(name, owner);
    }
  }

  #begin(name: string, owner: Owner): void {
    clearTimeout(owner.timer);
    owner.timer = undefined;
    owner.active++;
    this.#active++;
    this.#owners.delete(name);
    this.#owners.set(name, owner);
    owner.waiting.shift()?.();
  }

  #beImpatient(name: string, owner: Owner): void {
    const { places, beyond, patienceMs } = this.#options;
    clearTimeout(owner.timer);
    owner.timer = setTimeout(() => {
      if (owner.active > 0 || owner.waiting.length === 0) return;
      if (this.#active < places + beyond) this.#begin(name, owner);
      else this.#beImpatient(name, owner);
    }, patienceMs);
  }
}
