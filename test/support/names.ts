/** Names that nothing else has: those of services are unique, and those of collections within their domain. */

let count = 0;

export function uniqueName(prefix: string): string {
  count += 1;
  return `${prefix} ${count}`;
}
