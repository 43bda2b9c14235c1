/**
 * What this worker works on at the moment. Rows say that too, but a row outlives work that failed without being able to
 * say so, as when PostgreSQL goes away: such rows are found because their worker, although it is alive, knows nothing
 * of them.
 */
export class AtWork {
  /** How often each is worked on: a queue may deliver a job twice. */
  readonly #jobs = new Map<string, number>();

  /** Does the work of a job, which counts as worked on from before its row can say so until all is said. */
  async on<T>(jobId: string, work: () => Promise<T>): Promise<T> {
    this.#jobs.set(jobId, (this.#jobs.get(jobId) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const left = (this.#jobs.get(jobId) ?? 0) - 1;
      if (left > 0) this.#jobs.set(jobId, left);
      else this.#jobs.delete(jobId);
    }
  }

  has(jobId: string): boolean {
    return this.#jobs.has(jobId);
  }
}

/** The worker that looks for lost work, as it sees itself. */
export interface OwnWork {
  readonly workerId: string;
  readonly atWork: AtWork;
}
