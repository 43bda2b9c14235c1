/** An authority with an intermediate, as those of the internet have it, made by openssl. It issues for domains. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type TempDir, tempDir } from './temp.js';

const run = promisify(execFile);

/** A certificate with its key; PEM. */
export interface IssuedCertificate {
  /** Its own first. */
  readonly certificate: string;
  readonly private_key: string;
}

export interface IssueOptions {
  /** From now on; negative for one that has expired. 90 unless given. */
  readonly days?: number;
  /** Arguments of `openssl genpkey`: ECDSA P-256 unless given. */
  readonly key?: readonly string[];
}

export interface Authority {
  /** What clients have to know; PEM. */
  readonly root: string;
  /** With the intermediate certificate. */
  issue(names: readonly string[], options?: IssueOptions): Promise<IssuedCertificate>;
  remove(): Promise<void>;
}

const P256 = ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'];
const CA = 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n';

/** A root, and an intermediate that issues. */
export async function startAuthority(): Promise<Authority> {
  const folder: TempDir = await tempDir('authority');
  const at = (name: string) => join(folder.path, name);
  let count = 0;
  const key = async (file: string, args: readonly string[] = P256) =>
    run('openssl', ['genpkey', ...args, '-out', file]);
  const request = (file: string, name: string) =>
    run('openssl', ['req', '-new', '-key', file, '-subj', `/CN=${name}`, '-out', `${file}.csr`]);
  const sign = async (file: string, issuer: string | undefined, extensions: string, days: number) => {
    await writeFile(`${file}.ext`, extensions);
    const by = issuer === undefined ? ['-signkey', file] : ['-CA', `${issuer}.pem`, '-CAkey', issuer];
    await run('openssl', [
      ...['x509', '-req', '-in', `${file}.csr`, ...by, '-set_serial', String(Date.now() + ++count)],
      ...['-extfile', `${file}.ext`, '-out', `${file}.pem`],
      ...['-days', String(days)],
    ]);
  };
  const [root, intermediate] = [at('root'), at('intermediate')];
  for (const [file, issuer] of [[root], [intermediate, root]] as const) {
    await key(file);
    await request(file, file === root ? 'Test Root' : 'Test Authority');
    await sign(file, issuer, CA, 3650);
  }
  const rootPem = await readFile(`${root}.pem`, 'utf8');
  const intermediatePem = await readFile(`${intermediate}.pem`, 'utf8');
  return {
    root: rootPem,
    issue: async (names, { days = 90, key: args = P256 } = {}) => {
      const file = at(`leaf-${++count}`);
      await key(file, args);
      await request(file, names[0] ?? 'none');
      await sign(
        file,
        intermediate,
        `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}\n`,
        days,
      );
      const own = await readFile(`${file}.pem`, 'utf8');
      return { certificate: `${own}${intermediatePem}`, private_key: await readFile(file, 'utf8') };
    },
    remove: () => folder.remove(),
  };
}
