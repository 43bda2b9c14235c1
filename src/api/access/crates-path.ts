/** Where the registry of the SDK is: its clients, cargo, send a token as it is, without a scheme. */
export const CRATES_PATH = '/crates';

export function isOfCrates(path: string): boolean {
  return path === CRATES_PATH || path.startsWith(`${CRATES_PATH}/`);
}
