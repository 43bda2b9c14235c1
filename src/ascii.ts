/** Whether text has ASCII characters only: then it is the same in UTF-8 and Latin-1. */
export function isAscii(text: string): boolean {
  // Quicker than looking for a character beyond: this is asked of every request.
  return Buffer.byteLength(text) === text.length;
}
