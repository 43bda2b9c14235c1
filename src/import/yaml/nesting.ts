/**
 * How deeply a YAML text is nested, found out without recursion. To be asked before the text is parsed: the library's
 * composer recurses, and where a stack ends while a regular expression is being compiled, the engine ends the process.
 */
import { Lexer, Parser } from 'yaml';

/** Stops reading where the text is known to be deeper. */
export function isNestedDeeperThan(levels: number, text: string): boolean {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    // The parser's tokens are of no use here, but it goes on only when they are taken.
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > levels) return true;
  }
  return false;
}
