import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type TempDir, tempDir } from '../support/temp.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

interface Areas {
  readonly AREAS: Readonly<Record<string, readonly string[]>>;
  readonly ALWAYS: readonly string[];
  selectorFor(paths: readonly string[]): (name: string) => boolean;
  affectedTorture(
    files: readonly string[],
    root: string,
  ): { readonly files: string[]; readonly reason: string };
}

describe('the torture tests of a change', () => {
  const names = readdirSync(`${ROOT}test/torture`, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => file.replace('.test.ts', ''));
  let areas: Areas;
  const selected = (...paths: string[]) => names.filter(areas.selectorFor(paths));

  before(async () => {
    areas = (await import(`${ROOT}scripts/torture-areas.mjs`)) as Areas;
  });

  it('names only existing paths and tests in the table of torture tests', () => {
    for (const [path, tests] of Object.entries(areas.AREAS)) {
      const exists = existsSync(`${ROOT}${path}`) || beginsFile(path);
      expect(exists, `the path ${path}`).to.equal(true);
      for (const test of tests)
        expect(
          names.some((name) => name.startsWith(test)),
          `the test ${test}`,
        ).to.equal(true);
    }
  });

  it('names every torture test beside the paths that could break what it tests', () => {
    const beginnings = [...areas.ALWAYS, ...Object.values(areas.AREAS).flat()].filter((text) => text !== '');
    const isNamed = (name: string) => beginnings.some((beginning) => name.startsWith(beginning));
    expect(names.filter((name) => !isNamed(name))).to.deep.equal([]);
  });

  it('selects all torture tests for a path that the table does not know', () => {
    expect(selected('src/something-new/a.ts')).to.deep.equal(names);
    expect(selected('package-lock.json')).to.deep.equal(names);
  });

  it('always selects the torture tests of faults and of the isolation of handlers', () => {
    expect(selected('docs/LOGS.md')).to.have.length(areas.ALWAYS.length);
    expect(selected()).to.include.members(['faults/front-killed', 'hostile/handlers-isolation']);
  });

  it('selects the torture tests of the area that a path belongs to, by its longest beginning', () => {
    expect(selected('src/sandbox/kill.ts')).to.include.members([
      'hostile/builds',
      'hostile/handlers-resources',
    ]);
    expect(selected('rust/front/src/accept.rs'))
      .to.include('http/slow-clients')
      .and.not.include('hostile/builds');
    expect(selected('rust/front/src/challenges.rs')).to.include('acme').and.not.include('http/slow-clients');
    expect(selected('ui/src/pages.tsx')).to.include('ui/objects').and.not.include('cli/apply');
    expect(selected('docs/LOGS.md', 'jobs/acme-order.ts')).to.include('acme').and.not.include('soak');
  });

  describe('in a repository', () => {
    const SOAK = 'dist/test/torture/soak.test.js';
    const KILLED = 'dist/test/torture/faults/front-killed.test.js';
    let repository: TempDir;
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@example.com', ...args], {
        cwd: repository.path,
        encoding: 'utf8',
      }).trim();
    const write = async (path: string, text: string) => {
      await mkdir(dirname(join(repository.path, path)), { recursive: true });
      await writeFile(join(repository.path, path), text);
    };
    const affected = () => areas.affectedTorture([SOAK, KILLED], repository.path).files;
    const green = (commit: string) => write('test/green-commit.json', JSON.stringify({ commit }));

    beforeEach(async () => {
      repository = await tempDir('repository');
      git('init', '--quiet');
      await write('.gitignore', 'dist/\n');
      await write('docs/LOGS.md', 'logs');
      await write('test/support/load.ts', '');
      await write(SOAK, "import '../support/load.js';");
      await write('dist/test/support/load.js', '');
      await write(KILLED, '');
      git('add', '.');
      git('commit', '--quiet', '--message=first');
    });
    afterEach(() => repository.remove());

    it('selects all torture tests without a green commit, or one that the history does not have', async () => {
      expect(affected()).to.deep.equal([SOAK, KILLED]);
      await green('0123456789012345678901234567890123456789');
      expect(affected()).to.deep.equal([SOAK, KILLED]);
    });

    it('selects torture tests by what is committed, changed, added and deleted since the green commit', async () => {
      await green(git('rev-parse', 'HEAD'));
      expect(affected()).to.deep.equal([KILLED]);
      await write('docs/LOGS.md', 'other logs');
      git('commit', '--quiet', '--all', '--message=second');
      expect(affected()).to.deep.equal([KILLED]);
      await write('package.json', '{}');
      expect(affected()).to.deep.equal([SOAK, KILLED]);
      await rm(join(repository.path, 'package.json'));
      expect(affected()).to.deep.equal([KILLED]);
      await rm(join(repository.path, 'test/support/load.ts'));
      expect(affected()).to.deep.equal([SOAK, KILLED]);
    });
  });
});

/** Whether a beginning such as `src/gateway/front` is that of a file. */
function beginsFile(path: string): boolean {
  const [, folder = '', beginning = ''] = /^(.*\/)?([^/]*)$/.exec(path) ?? [];
  return readdirSync(`${ROOT}${folder}`).some((name) => name.startsWith(beginning));
}
