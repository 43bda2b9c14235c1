/** Crates from git, as cargo keeps them: `git/db` of CARGO_HOME has repositories, `git/checkouts` revisions of them. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lockedPackages } from '../model/cargo-lock.js';

/** `git+https://git.example.com/team/x?rev=…#…`: the address, and the revision. */
const SOURCE = /^git\+([^?#]+)(?:\?[^#]*)?#([0-9a-f]{40})$/;

/** The folders below `git` that have the crates of a lock: repositories, and in them the revisions that it names. */
export async function gitFolders(lock: string, cargoHome: string): Promise<string[]> {
  const sources = new Set(lockedPackages(lock).map(({ source }) => source ?? ''));
  const folders = new Set<string>();
  for (const source of sources) {
    const [, url, revision] = SOURCE.exec(source) ?? [];
    if (url === undefined || revision === undefined) continue;
    for (const repository of await repositoriesOf(url, cargoHome)) {
      folders.add(join('db', repository));
      const checkouts = await readdir(join(cargoHome, 'git', 'checkouts', repository)).catch(() => []);
      // Named after as much of the revision as tells it from others.
      for (const name of checkouts)
        if (revision.startsWith(name)) folders.add(join('checkouts', repository, name));
    }
  }
  return [...folders];
}

/** The names of folders have a hash that cargo alone can compute: git says which repository one is of. */
async function repositoriesOf(url: string, cargoHome: string): Promise<string[]> {
  const db = join(cargoHome, 'git', 'db');
  const fetched = (await readdir(db).catch(() => [])).map(async (name) => {
    const head = await readFile(join(db, name, 'FETCH_HEAD'), 'utf8').catch(() => '');
    const addresses = head.split('\n').map((line) => plainUrl(line.split(/[\t ]/).at(-1) ?? ''));
    return addresses.includes(plainUrl(url)) ? [name] : [];
  });
  return (await Promise.all(fetched)).flat();
}

/** An address as git writes it down. */
function plainUrl(url: string): string {
  return url.replace(/\/+$/, '').replace(/\.git$/, '');
}
