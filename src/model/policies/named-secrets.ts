/** The secrets that policies name: passwords of callers, and keys of signatures. */

/**
 * Why a name is no secret. @param isPlain whether it is a plain variable: whoever reads it there knows it
 */
export function problemOfSecret(name: string, isPlain: boolean): string {
  return isPlain
    ? `${name} is a plain variable, which many may read, but a policy needs it as a secret.`
    : `The secret ${name} is not set, which a policy needs.`;
}
