/** Reads certificates, and says what is wrong with them before they are shown to anybody. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { AppError } from '../errors.js';
import { isForHost } from './certificate-names.js';

/** What is known of a certificate that fits its host and its key. */
export interface CheckedCertificate {
  /** PEM, its own certificate first. */
  readonly chain: string;
  readonly names: readonly string[];
  readonly issuer: string;
  /** sha256, in hexadecimal digits. */
  readonly fingerprint: string;
  readonly valid_from: Date;
  readonly expires_at: Date;
}

interface CertificateInput {
  /** PEM: its own certificate, then those that lead to one that clients know. */
  readonly certificate: string;
  /** PEM. */
  readonly private_key: string;
}

const BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;
/** A chain to a root has two or three. */
const MOST = 10;
const LEAST_RSA_BITS = 2048;
const CURVES = ['prime256v1', 'secp384r1'];

/**
 * Checks a certificate for a host.
 * @throws AppError invalid_input that names the member that is wrong, and never has a part of the key
 */
export function checkCertificate(
  { certificate, private_key }: CertificateInput,
  host: string,
): CheckedCertificate {
  const chain = readChain(certificate);
  const [own, ...others] = chain;
  if (!own) throw wrong('certificate', 'has no "-----BEGIN CERTIFICATE-----"; give it as PEM');
  requireKey(own, readKey(private_key));
  requireHost(own, host);
  requireTime(own);
  requireOrder([own, ...others]);
  return {
    chain: chain.map((one) => one.toString().trim()).join('\n'),
    names: namesOf(own),
    issuer: issuerOf(own),
    fingerprint: own.fingerprint256.replaceAll(':', '').toLowerCase(),
    valid_from: new Date(own.validFrom),
    expires_at: new Date(own.validTo),
  };
}

function readChain(text: string): X509Certificate[] {
  const blocks = text.match(BLOCK) ?? [];
  if (blocks.length > MOST) throw wrong('certificate', `has more than ${MOST} certificates`);
  return blocks.map((block, at) => {
    try {
      return new X509Certificate(block);
    } catch {
      throw wrong('certificate', `its certificate ${at + 1} cannot be read`);
    }
  });
}

function readKey(text: string): KeyObject {
  if (/ENCRYPTED/.test(text)) throw wrong('private_key', 'is encrypted; give it without a passphrase');
  try {
    return createPrivateKey(text);
  } catch {
    throw wrong('private_key', 'cannot be read; give it as PEM, "-----BEGIN PRIVATE KEY-----"');
  }
}

function requireKey(own: X509Certificate, key: KeyObject): void {
  const { asymmetricKeyType: type, asymmetricKeyDetails: { modulusLength = 0, namedCurve = '' } = {} } = key;
  const isSupported =
    type === 'ed25519' ||
    (type === 'rsa' && modulusLength >= LEAST_RSA_BITS) ||
    (type === 'ec' && CURVES.includes(namedCurve));
  if (!isSupported)
    throw wrong(
      'private_key',
      `must be RSA of ${LEAST_RSA_BITS} bits or more, ECDSA P-256 or P-384, or Ed25519`,
    );
  if (!own.checkPrivateKey(key)) throw wrong('private_key', 'is not the key of the (first) certificate');
}

function requireHost(own: X509Certificate, host: string): void {
  const names = namesOf(own);
  if (!isForHost(names, host))
    throw wrong('certificate', `is for ${names.join(', ') || 'no host'}, and not for ${host}`);
}

function requireTime({ validFrom, validTo }: X509Certificate): void {
  const now = Date.now();
  if (new Date(validTo).getTime() <= now) throw wrong('certificate', `has expired: ${validTo}`);
  if (new Date(validFrom).getTime() > now) throw wrong('certificate', `is not valid before ${validFrom}`);
}

/** Each has to be issued by the one behind it. */
function requireOrder(chain: readonly X509Certificate[]): void {
  for (const [at, issuer] of chain.slice(1).entries()) {
    const issued = chain[at];
    if (issued?.checkIssued(issuer) && issued.verify(issuer.publicKey)) continue;
    const message = `its certificate ${at + 1} is not issued by its certificate ${at + 2}; put them in that order`;
    throw wrong('certificate', message);
  }
}

/** Hosts in lower case. */
function namesOf({ subjectAltName = '' }: X509Certificate): string[] {
  return subjectAltName
    .split(', ')
    .flatMap((name) => (name.startsWith('DNS:') ? [name.slice(4).toLowerCase()] : []));
}

function issuerOf({ issuer }: X509Certificate): string {
  const parts = new Map(issuer.split('\n').map((line) => line.split('=', 2) as [string, string]));
  return parts.get('CN') ?? parts.get('O') ?? issuer.replaceAll('\n', ', ');
}

function wrong(member: keyof CertificateInput, problem: string): AppError {
  return new AppError('invalid_input', `body.${member}: ${problem}`);
}
