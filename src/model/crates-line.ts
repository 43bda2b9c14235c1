/** How far a set of crates is, as a line. */

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
