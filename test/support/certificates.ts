/**
 * Certificates for test servers, made by `openssl`: a separate authority, and certificates it issued for some names.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A file and its content. */
export interface PemFile {
  readonly path: string;
  readonly pem: string;
}

export interface Certificates {
  /** The certificate of the authority that issued `cert`. */
  readonly ca: PemFile;
  readonly cert: PemFile;
  /** Belongs to `cert`; without a passphrase. */
  readonly key: PemFile;
}

/**
 * Creates an authority and a certificate issued by it for a server.
 * @param folder where the files go; it must exist
 * @param hostnames names or addresses the certificate is valid for
 */
export async function makeCertificates(folder: string, hostnames: readonly string[]): Promise<Certificates> {
  const [caKey, ca, key, cert] = ['ca-key.pem', 'ca.pem', 'key.pem', 'cert.pem'].map((name) =>
    join(folder, name),
  ) as [string, string, string, string];
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc', '-days', '2'];
  await run('openssl', [
    ...['req', '-x509', ...newKey, '-keyout', caKey, '-out', ca, '-subj', '/CN=Test authority'],
    ...['-addext', 'keyUsage=critical,keyCertSign,cRLSign'],
  ]);
  const names = hostnames.map((name) => `${isIP(name) ? 'IP' : 'DNS'}:${name}`).join(',');
  await run('openssl', [
    ...['req', '-x509', ...newKey, '-keyout', key, '-out', cert, '-CA', ca, '-CAkey', caKey],
    ...['-subj', `/CN=${hostnames[0] ?? 'test'}`, '-addext', `subjectAltName=${names}`],
    ...['-addext', 'basicConstraints=critical,CA:FALSE'],
  ]);
  return { ca: await file(ca), cert: await file(cert), key: await file(key) };
}

async function file(path: string): Promise<PemFile> {
  return { path, pem: await readFile(path, 'utf8') };
}
