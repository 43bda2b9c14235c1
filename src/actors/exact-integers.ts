/** Integers in JSON text that a double cannot hold: `JSON.parse` would change them silently. */

const LONG_NUMBER = /\d{16}/;
/** Texts are matched as a whole, so that digits within them are left alone. */
const TEXT_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const INTEGER = /^-?\d{16,}$/;

/**
 * Replaces integers beyond 2^53 in JSON text.
 * @param write gets the digits, with their sign; returns the JSON text to stand there instead
 */
export function replaceBigIntegers(json: string, write: (digits: string) => string): string {
  if (!LONG_NUMBER.test(json)) return json;
  return json.replace(TEXT_OR_NUMBER, (token) =>
    INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? write(token) : token,
  );
}
