/**
 * The jobs that this worker is executing. A row alone does not tell: when a job fails without being able to record it,
 * as while PostgreSQL is unavailable, its row stays "running". Such rows are recognised because their worker is alive
 * but is not executing them.
 */
export class ActiveJobs {
  /** Executions per job: a queue may deliver a job twice. */
  readonly #jobs = new Map<string, number>();

  /** Executes a job, which is active from before its row says so until its outcome is recorded. */
  async run<T>(jobId: string, work: () => Promise<T>): Promise<T> {
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

  /** The ids of all jobs that are executed. */
  get ids(): readonly string[] {
    return [...this.#jobs.keys()];
  }
}

/** The worker of this process, which recovers lost jobs. */
export interface ThisWorker {
  readonly workerId: string;
  readonly activeJobs: ActiveJobs;
}
