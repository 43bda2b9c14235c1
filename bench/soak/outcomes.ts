/** The outcomes of all operations of the traffic: successes, and errors by name. */

/** Successes and errors of the operations of one kind. */
export interface Outcome {
  readonly done: number;
  /** Counts by error. */
  readonly errors: ReadonlyMap<string, number>;
}

/** Counts the operations of the traffic by kind. */
export class Outcomes {
  readonly #byKind = new Map<string, { done: number; errors: Map<string, number> }>();

  get all(): ReadonlyMap<string, Outcome> {
    return this.#byKind;
  }

  /** Successful operations. */
  get done(): number {
    return [...this.#byKind.values()].reduce((sum, { done }) => sum + done, 0);
  }

  /** Errors in words; none are expected. */
  get errors(): string[] {
    return [...this.#byKind].flatMap(([kind, { errors }]) =>
      [...errors].map(([what, times]) => `${kind}: ${what} (${times} times)`),
    );
  }

  /**
   * Runs an operation and counts its outcome.
   * @param work throws when anything differs from the documentation
   */
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

/** Removes numbers and ids, so that equal errors have one name. */
function describe(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return text
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>')
    .replace(/\d{4,}/g, '<number>')
    .slice(0, 300);
}
