/** Integers in JSON text that a double cannot hold: `JSON.parse` would change them silently. */

const LONG_NUMBER = /\d{16}/;
const INTEGER = /^-?\d+$/;
/** The fewest characters of an integer beyond 2^53. */
const LONG = 16;

const QUOTE = 0x22;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const BACKSLASH = 0x5c;

/**
 * Replaces integers beyond 2^53 in JSON text. Takes time in proportion to its length, whoever wrote it.
 * @param write gets the digits, with their sign; returns the JSON text to stand there instead
 * @throws SyntaxError when there are such integers, and the text is not JSON
 */
export function replaceBigIntegers(json: string, write: (digits: string) => string): string {
  if (!LONG_NUMBER.test(json)) return json;
  // What follows knows where texts and numbers end only in JSON.
  JSON.parse(json);
  let replaced = '';
  let copied = 0;
  for (let at = 0; at < json.length; ) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfText(json, at);
    else if (code === MINUS || isDigit(code)) {
      const end = endOfNumber(json, at);
      const number = end - at < LONG ? '' : json.slice(at, end);
      if (INTEGER.test(number) && !Number.isSafeInteger(Number(number))) {
        replaced += json.slice(copied, at) + write(number);
        copied = end;
      }
      at = end;
    } else at++;
  }
  return replaced + json.slice(copied);
}

/** Where the text is over that begins with the quote at `start`. */
function endOfText(json: string, start: number): number {
  let quote = json.indexOf('"', start + 1);
  while (isEscaped(json, quote)) quote = json.indexOf('"', quote + 1);
  return quote + 1;
}

function isEscaped(json: string, quote: number): boolean {
  let backslashes = 0;
  while (json.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes++;
  return backslashes % 2 === 1;
}

/** Digits, and what stands between them: `-`, `+`, `.`, `e`, `E`. */
function endOfNumber(json: string, start: number): number {
  let end = start + 1;
  while (isDigit(json.charCodeAt(end)) || '+-.eE'.includes(json.charAt(end) || ' ')) end++;
  return end;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}
