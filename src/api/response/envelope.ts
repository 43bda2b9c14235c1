/** The envelopes of responses. */
import type { AppError } from '../../errors.js';

/**
 * `ok`: the envelope of the contract. `success`: its variant for activating and deactivating services.
 * `bare`: no envelope around a success; failures still say what went wrong.
 */
export type Envelope = 'ok' | 'success' | 'bare';

export function wrapSuccess(envelope: Envelope, data: unknown, warnings: readonly string[]): unknown {
  if (envelope === 'bare') return data;
  return { [envelope]: true, data, ...(warnings.length > 0 && { warnings }) };
}

export function wrapFailure(envelope: Envelope, error: AppError): object {
  return {
    ...(envelope === 'success' && { success: false }),
    ok: false,
    error: error.message,
    code: error.code,
    ...error.extras,
  };
}
