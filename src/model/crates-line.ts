/** How far a set of crates is, as a line. The command line and the web UI have copies of this file. */

/** What handlers depend on besides the SDK, as one thing that workers prepare. */
export const CRATES = 'crates of handlers';

interface CratesProgress {
  readonly crates: number;
  readonly of: number | null;
  readonly crate: string | null;
  readonly crate_seconds: number | null;
  readonly seconds: number;
}

/** `crates 7 of 31: reqwest (22 s)` */
export function cratesLine({ crates, of, crate, crate_seconds, seconds }: CratesProgress): string {
  if (of === null) return `crates: downloading (${seconds} s)`;
  return `crates ${crates} of ${of}${crate === null ? '' : `: ${crate} (${crate_seconds} s)`}`;
}
