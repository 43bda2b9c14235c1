/** Running out of file descriptors: it says something about this process or this machine, nothing about what was to be opened. */
const CODES = ['EMFILE', 'ENFILE'];

export function isOutOfDescriptors(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && CODES.includes(String(thrown.code));
}
