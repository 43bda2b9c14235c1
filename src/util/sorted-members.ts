/** The order of members means nothing in JSON, but in what is made of it. */

/** The same value with the members of all its objects in the order of their names. */
export function sortedMembers<T>(value: T): T {
  if (Array.isArray(value)) return value.map(sortedMembers) as T;
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, sortedMembers(member)] as const);
  return Object.fromEntries(members.sort(([left], [right]) => (left < right ? -1 : 1))) as T;
}
