/** Why an object of this key can neither be downloaded nor deleted here; undefined: it can. */
export function keyProblem(key: string): string | undefined {
  if (key.startsWith('/')) return 'begins with a slash';
  const dots = key.split('/').find((segment) => segment === '.' || segment === '..');
  return dots === undefined ? undefined : `has “${dots}” between slashes`;
}
