/**
 * The pools that the source of a handler names literally, as `RedisPool::new("cache")`. A look at the text, for hints:
 * names that are computed, or that a macro makes, are not found.
 */
import { endOfComment } from './rust-references.js';

/** A comment or its beginning, a string, or something else. Strings without an end go to the end of the text. */
const TOKEN =
  /\/\/[^\n]*|\/\*|r(#*)"[\s\S]*?(?:"\1|$)|"(?:\\[\s\S]?|[^"\\])*(?:"|$)|'(?:\\.|[^'\\\n])'|[^/"'r]+|[\s\S]/g;
/** What stands before the name. */
const BEFORE_NAME = new RegExp(
  [
    String.raw`\b[A-Z]\w*Pool\s*::\s*new\s*\(`,
    String.raw`\bStorage\s*::\s*(?:database|object_storage|file_storage)\s*\(`,
    String.raw`\bpool_id\s*:`,
  ]
    .map((place) => String.raw`${place}\s*(?:String\s*::\s*from\s*\(\s*)?$`)
    .join('|'),
);
/** More than what can stand before a name. */
const LOOK_BEHIND = 120;

/** The names in all files of a source, sorted. */
export function poolsNamedIn(codes: readonly string[]): string[] {
  return [...new Set(codes.flatMap(namedPools))].sort();
}

/** The names, sorted. */
export function namedPools(code: string): string[] {
  const names = new Set<string>();
  let before = '';
  for (const token of tokens(code)) {
    const [, raw, plain] = /^(?:r#*"([\s\S]*)"#*|"([\s\S]*)")$/.exec(token) ?? [];
    const name = raw ?? plain;
    // With an escape it is something else than what is written.
    if (name !== undefined && !name.includes('\\') && BEFORE_NAME.test(before)) names.add(name);
    before = `${before}${token}`.slice(-LOOK_BEHIND);
  }
  return [...names].sort();
}

/** Strings and other characters; comments are left out. */
function* tokens(code: string): Generator<string> {
  const token = new RegExp(TOKEN);
  for (let match = token.exec(code); match; match = token.exec(code)) {
    const [text] = match;
    if (text === '/*') token.lastIndex = endOfComment(code, token.lastIndex);
    else if (!text.startsWith('//')) yield text;
  }
}
