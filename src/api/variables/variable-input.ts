/** Variables as they come in: how long values may be, and what they may not replace. */
import { AppError } from '../../errors.js';
import { MAX_VARIABLE_BYTES, variableBytes } from '../../store/variables.js';

const MAX_VALUE_BYTES = 64 * 1024;

/** @throws AppError invalid_input */
export function requireAccepted(value: string, where: string): void {
  const bytes = Buffer.byteLength(value, 'utf8');
  if (bytes > MAX_VALUE_BYTES)
    throw new AppError('invalid_input', `${where}: has ${bytes} bytes; at most ${MAX_VALUE_BYTES}`);
}

/**
 * All plain variables of an owner.
 * @param secrets names of its secrets
 * @throws AppError invalid_input, name_is_secret
 */
export function requireVariables(
  variables: Readonly<Record<string, string>>,
  secrets: readonly string[],
): void {
  let bytes = 0;
  for (const [name, value] of Object.entries(variables)) {
    requireAccepted(value, `variables.${name}`);
    if (secrets.includes(name))
      throw new AppError(
        'name_is_secret',
        `variables.${name}: is a secret; delete the secret first, or leave it out`,
      );
    bytes += variableBytes(name, value);
  }
  if (bytes > MAX_VARIABLE_BYTES)
    throw new AppError(
      'invalid_input',
      `variables: have ${bytes} bytes with their names; at most ${MAX_VARIABLE_BYTES}`,
    );
}
