/** Which of several names somebody may have meant. */

/** The names that differ least from a text, in any case, the nearest first; none that have little in common with it. */
export function nearestOf(text: string, names: readonly string[], count = 3): string[] {
  const sought = text.toLowerCase();
  const limit = Math.max(2, Math.floor(sought.length / 3));
  return names
    .map((name) => ({ name, distance: distanceWithin(sought, name.toLowerCase(), limit) }))
    .filter(({ distance }) => distance <= limit)
    .sort((one, other) => one.distance - other.distance || (one.name < other.name ? -1 : 1))
    .slice(0, count)
    .map(({ name }) => name);
}

/** Levenshtein's distance; more than the limit when it is greater. */
function distanceWithin(one: string, other: string, limit: number): number {
  if (Math.abs(one.length - other.length) > limit) return limit + 1;
  let before = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let row = 1; row <= one.length; row++) {
    const now = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const [diagonal = 0, above = 0, left = 0] = [before[column - 1], before[column], now[column - 1]];
      now.push(Math.min(diagonal + (isSame ? 0 : 1), above + 1, left + 1));
    }
    if (Math.min(...now) > limit) return limit + 1;
    before = now;
  }
  return before[other.length] ?? 0;
}
