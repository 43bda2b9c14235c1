/** The scripts that complete `edge` in shells: the shells themselves run them. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { edge } from '../support/edge.js';
import { type TempDir, tempDir } from '../support/temp.js';

const run = promisify(execFile);

describe('completion', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('completion');
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { code, stdout } = await edge(['completion', shell]);
      expect(code).to.equal(0);
      await writeFile(join(folder.path, shell), stdout);
    }
  });
  after(() => folder.remove());

  const script = (shell: string) => join(folder.path, shell);
  const CASES = [
    [['endp'], 'endpoint'],
    [['endpoint', 'li'], 'list'],
    [['service', 'act'], 'activate'],
    [['logs', '--lev'], '--level'],
    [['logs', '--level', 'wa'], 'warn'],
    [['import', 'openapi', '--vali'], '--validate'],
    [['completion', 'fi'], 'fish'],
  ] as const;

  for (const [words, expected] of CASES) {
    it(`bash completes edge ${words.join(' ')}`, async () => {
      const all = ['edge', ...words];
      const line = `source "$0"; COMP_WORDS=(${all.join(' ')}); COMP_CWORD=${all.length - 1}; _edge; echo "\${COMPREPLY[@]}"`;
      expect((await run('bash', ['-c', line, script('bash')])).stdout.split(/\s/)).to.include(expected);
    });

    it(`zsh completes edge ${words.join(' ')}`, async () => {
      const all = ['edge', ...words];
      // The functions of zsh's own that take the candidates print them.
      const line = `compdef() { }; _files() { }; _describe() { print -l -- \${(P)2} }; compadd() { shift; print -l -- "$@" }
source "$0"; words=(${all.join(' ')}); CURRENT=${all.length}; _edge`;
      const { stdout } = await run('zsh', ['-f', '-c', line, script('zsh')]);
      expect(stdout.split('\n').map((one) => one.split(':')[0])).to.include(expected);
    });

    it(`fish completes edge ${words.join(' ')}`, async () => {
      const line = `source ${script('fish')}; complete -C 'edge ${words.join(' ')}'`;
      const { stdout } = await run('fish', ['--no-config', '-c', line], {
        env: { ...process.env, HOME: folder.path },
      });
      expect(stdout.split('\n').map((one) => one.split('\t')[0])).to.include(expected);
    });
  }
});
