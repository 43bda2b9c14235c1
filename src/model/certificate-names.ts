/** Which hosts a certificate is for. */

/** @param names of the certificate, in lower case; `*.` at the beginning of one stands for one label */
export function isForHost(names: readonly string[], host: string): boolean {
  const [, ...rest] = host.split('.');
  return names.some((name) => name === host || name === `*.${rest.join('.')}`);
}
