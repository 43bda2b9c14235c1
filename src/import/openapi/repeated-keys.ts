/**
 * Keys that stand more than once in one object of a JSON text. `JSON.parse` keeps the last one and says nothing, and
 * RFC 8259, section 4, leaves it open: https://www.rfc-editor.org/rfc/rfc8259#section-4
 */
import type { RepeatedKey } from '../yaml.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/**
 * Finds all of them. A text without any, as nearly all are, costs half of its parsing.
 * @param json a text that can be parsed
 * @param value what was parsed of it
 */
export function repeatedKeys(json: string, value: unknown): readonly RepeatedKey[] {
  return countInText(json) === countInValue(value) ? [] : find(json);
}

function countInText(json: string): number {
  let count = 0;
  for (let at = json.indexOf('"'); at >= 0; at = json.indexOf('"', at)) {
    at = endOfString(json, at);
    if (isKey(json, at)) count++;
  }
  return count;
}

function countInValue(value: unknown): number {
  let count = 0;
  const pending = [value];
  for (let one = pending.pop(); one !== undefined; one = pending.pop()) {
    const members: unknown[] = Object.values(one as object);
    if (!Array.isArray(one)) count += members.length;
    for (const member of members) if (typeof member === 'object' && member !== null) pending.push(member);
  }
  return count;
}

function find(json: string): RepeatedKey[] {
  const repeated: RepeatedKey[] = [];
  /** The keys of each open object; of an open array, none. */
  const open: (Set<string> | undefined)[] = [];
  let line = 1;
  let lineStart = 0;
  for (let at = 0; at < json.length; at++) {
    const character = json[at];
    if (character === '\n') {
      line++;
      lineStart = at + 1;
    } else if (character === '{') open.push(new Set());
    else if (character === '[') open.push(undefined);
    else if (character === '}' || character === ']') open.pop();
    else if (character === '"') {
      const end = endOfString(json, at);
      const keys = isKey(json, end) ? open.at(-1) : undefined;
      if (keys) {
        const key = JSON.parse(json.slice(at, end)) as string;
        if (keys.has(key)) repeated.push({ key, location: `line ${line}, column ${at - lineStart + 1}` });
        keys.add(key);
      }
      at = end - 1;
    }
  }
  return repeated;
}

/** The offset behind the closing quote of the string that begins at an offset. */
function endOfString(json: string, start: number): number {
  for (let at = start + 1; ; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at++;
  }
}

/** Whether a string that ends at an offset is a key. */
function isKey(json: string, end: number): boolean {
  let at = end;
  while (json.charCodeAt(at) <= 0x20) at++;
  return json.charCodeAt(at) === COLON;
}
