/** How much the queued requests and schedules of one owner may take together (`owner.ts`). */

/** Bytes. */
export function queueLimit({ JOBS_QUEUED_MB }: { readonly JOBS_QUEUED_MB: number }): number {
  return JOBS_QUEUED_MB * 1024 * 1024;
}
