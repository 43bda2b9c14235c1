/**
 * The published OpenAPI documents that the tests import: `test/import/documents/published.json` lists the packages that
 * have them, with the hashes of these. They are unpacked into the cache, each into a folder named by its hash.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ROOT, run, step } from './prepare.mjs';

/** @param cache folder; `test/support/server-cache.ts` locates the documents in it */
export async function ensurePublishedDocuments(cache) {
  const packages = JSON.parse(readFileSync(`${ROOT}test/import/documents/published.json`, 'utf8'));
  mkdirSync(join(cache, 'documents'), { recursive: true });
  for (const { source, sha256, ...origin } of packages) {
    const unpacked = join(cache, 'documents', sha256);
    if (existsSync(unpacked)) continue;
    step(`Downloading ${source}`);
    const folder = mkdtempSync(join(cache, 'build-'));
    const problem = await unpack(origin, sha256, folder);
    // Another run may have been faster.
    if (problem === undefined && !existsSync(unpacked)) renameSync(join(folder, 'content'), unpacked);
    rmSync(folder, { recursive: true, force: true });
    if (problem !== undefined) fail(`${source} could not be had: ${problem}`);
  }
}

/**
 * Resolves with a problem, if there is one.
 * @param origin `npm`, a package and its version, or `url`
 */
async function unpack({ npm, url }, sha256, folder) {
  // Unlike Node, curl knows the certificates and proxies of this machine; npm knows its registry, too.
  const [program, args] = npm
    ? ['npm', ['pack', npm, '--silent', '--pack-destination', folder]]
    : ['curl', ['-fsSL', '--retry', '3', '-o', join(folder, 'package.tar.gz'), url]];
  const code = await run(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const [file] = readdirSync(folder);
  if (code !== 0 || file === undefined) return `${program} said why above`;
  const archive = join(folder, file);
  if (createHash('sha256').update(readFileSync(archive)).digest('hex') !== sha256)
    return 'its hash is another one';
  mkdirSync(join(folder, 'content'));
  // All of its files are in one folder.
  const options = ['-xzf', file, '-C', 'content', '--strip-components=1', '--no-same-owner'];
  return (await run('tar', options, { cwd: folder })) === 0 ? undefined : 'tar said why above';
}
