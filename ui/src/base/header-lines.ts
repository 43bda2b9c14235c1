/** Headers as they are typed: a line each, such as `Name: value`. */

export function headerLines(headers: object): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}

/** @param text without a `headerProblem` */
export function headersOf(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(
    lines.map((line) => {
      const [name = '', ...value] = line.split(':');
      return [name.trim(), value.join(':').trim()];
    }),
  );
}

/** What is wrong with a text that the API would not see: there would be another header, or one less. */
export function headerProblem(text: string): string | undefined {
  const names = new Set<string>();
  for (const [at, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const name = line.split(':', 1)[0]?.trim() ?? '';
    if (name === '' || !line.includes(':'))
      return `line ${at + 1}: is not a name and a value, such as ${name || 'X-Name'}: value`;
    if (names.has(name.toLowerCase())) return `line ${at + 1}: has the name of another line`;
    names.add(name.toLowerCase());
  }
  return undefined;
}
