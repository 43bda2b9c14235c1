/** Signs tokens with the key of one process of a service, which accepts no other. */
import { createHmac } from 'node:crypto';
import type { SecretBox } from '../../secrets/secret-box.js';

export function tokenSigner(key: string): Pick<SecretBox, 'sign' | 'signatures'> {
  const sign = (purpose: string, text: string) =>
    createHmac('sha256', key).update(`${purpose}\0${text}`).digest('base64url');
  return { sign, signatures: (purpose, text) => [sign(purpose, text)] };
}
