/** What strangers made a program print, as a database takes it: without NUL and halves of characters. */
export function printable(text: string): string {
  return Buffer.from(text).toString().replaceAll('\0', '\ufffd');
}
