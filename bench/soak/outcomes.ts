/** What became of everything the traffic did: as it had to be, or an error, named and counted. */

/** How often the operations of one kind went well, and what went wrong. */
export interface Outcome {
  readonly done: number;
  /** By what was wrong. */
  readonly errors: ReadonlyMap<string, number>;
}

/** Counts the operations of the traffic by kind. */
export class Outcomes {
  readonly #byKind = new Map<string, { done: number; errors: Map<string, number> }>();

  get all(): ReadonlyMap<string, Outcome> {
    return this.#byKind;
  }

  /** Operations that went well. */
  get done(): number {
    return [...this.#byKind.values()].reduce((sum, { done }) => sum + done, 0);
  }

  /** What went wrong, in words: none is the promise. */
  get errors(): string[] {
    return [...this.#byKind].flatMap(([kind, { errors }]) =>
      [...errors].map(([what, times]) => `${kind}: ${what} (${times} times)`),
    );
  }

  /** Carries out an operation and counts it. @param work throws when anything is not as documented */
  async run(kind: string, work: () => Promise<void>): Promise<void> {
    let outcome = this.#byKind.get(kind);
    if (!outcome) {
      outcome = { done: 0, errors: new Map() };
      this.#byKind.set(kind, outcome);
    }
    try {
      await work();
      outcome.done++;
    } catch (thrown) {
      const what = describe(thrown);
      outcome.errors.set(what, (outcome.errors.get(what) ?? 0) + 1);
    }
  }
}

/** Without numbers and ids, so that the same error has one name. */
function describe(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return text
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>')
    .replace(/\d{4,}/g, '<number>')
    .slice(0, 300);
}
