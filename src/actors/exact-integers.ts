/** Integers in JSON text that a double cannot represent: `JSON.parse` would round them silently. */

const LONG_NUMBER = /\d{16}/;
/** Minimum length of an integer beyond 2^53. */
const LONG = 16;

const QUOTE = 0x22;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const BACKSLASH = 0x5c;

/**
 * Replaces integers beyond 2^53 in JSON text, which may be hostile: the time is linear in its length.
 * @param write gets the digits, with their sign; returns the JSON text to replace them
 * @throws SyntaxError when there are such integers, and the text is not JSON
 */
export function replaceBigIntegers(json: string, write: (digits: string) => string): string {
  if (!LONG_NUMBER.test(json)) return json;
  // The scan below relies on valid JSON.
  JSON.parse(json);
  let replaced = '';
  let copied = 0;
  for (let at = 0; at < json.length; ) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfText(json, at);
    else if (code === MINUS || isDigit(code)) {
      const end = endOfNumber(json, at);
      const number = end - at < LONG ? '' : json.slice(at, end);
      if (number !== '' && isInteger(number) && !Number.isSafeInteger(Number(number))) {
        replaced += json.slice(copied, at) + write(number);
        copied = end;
      }
      at = end;
    } else at++;
  }
  return replaced + json.slice(copied);
}

/** The end of the string that begins with the quote at `start`. */
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

/** Characters of numbers: digits, `-`, `+`, `.`, `e`, `E`. */
function endOfNumber(json: string, start: number): number {
  let end = start + 1;
  while (isDigit(json.charCodeAt(end)) || '+-.eE'.includes(json.charAt(end) || ' ')) end++;
  return end;
}

/** Not by a regular expression, whose stack millions of digits can exceed. */
function isInteger(number: string): boolean {
  for (let at = number.charCodeAt(0) === MINUS ? 1 : 0; at < number.length; at++)
    if (!isDigit(number.charCodeAt(at))) return false;
  return true;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}
