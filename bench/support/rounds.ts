/** Things that are compared are measured in turn, round by round: other load on the machine slows all of them. */
import { median } from './report.js';

/** One measurement of each. */
export type Round<K extends string, T> = Readonly<Record<K, T>>;

/** Measures each in turn, several times. The first round, in which everything warms up, does not count. */
export async function measureInTurn<K extends string, T>(
  rounds: number,
  measure: Readonly<Record<K, () => Promise<T>>>,
): Promise<Round<K, T>[]> {
  const measured: Round<K, T>[] = [];
  for (let number = 0; number <= rounds; number++) {
    const round: Partial<Record<K, T>> = {};
    for (const name of Object.keys(measure) as K[]) round[name] = await measure[name]();
    if (number > 0) measured.push(round as Round<K, T>);
  }
  return measured;
}

/** The median of a figure of one of them. */
export function medianOf<K extends string, T>(
  rounds: readonly Round<K, T>[],
  name: K,
  figure: (result: T) => number,
): number {
  return median(rounds.map((round) => figure(round[name])));
}

/** The median of the ratios of all rounds. */
export function ratioOf<K extends string, T>(
  rounds: readonly Round<K, T>[],
  name: K,
  against: K,
  figure: (result: T) => number,
): number {
  return median(rounds.map((round) => figure(round[name]) / figure(round[against])));
}
