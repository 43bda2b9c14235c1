/** Signs tokens with the key of one process of a service. */
import { createHmac } from 'node:crypto';

export function tokenSigner(key: string): { sign(purpose: string, text: string): string } {
  return {
    sign: (purpose, text) => createHmac('sha256', key).update(`${purpose}\0${text}`).digest('base64url'),
  };
}
