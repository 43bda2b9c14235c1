/** Where in a YAML text a value stands, for messages. */
import { isMap, isNode, isScalar, isSeq } from 'yaml';

/**
 * Offset of what a path of keys leads to; of what it leads to last, when not all of it is there.
 * @param contents the root of a parsed document
 */
export function placeIn(contents: unknown, path: readonly string[]): number {
  let place = startOf(contents) ?? 0;
  let node = contents;
  for (const key of path) {
    let found: unknown;
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === key);
      place = startOf(pair?.key) ?? place;
      found = pair?.value;
    } else if (isSeq(node)) {
      found = node.items[Number(key)];
      place = startOf(found) ?? place;
    }
    if (found === undefined) break;
    node = found;
  }
  return place;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
