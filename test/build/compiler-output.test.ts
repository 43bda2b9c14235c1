/** What is read from the output of the real compiler. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { execa } from 'execa';
import { parseRustcOutput, withCrateHelp } from '../../src/build/diagnostics.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('output of the compiler', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('rustc');
  });
  after(() => folder.remove());

  const errorsOf = async (code: string) => {
    await writeFile(join(folder.path, 'handler.rs'), code);
    const args = ['--edition=2021', '--error-format=json', '--emit=metadata', 'handler.rs'];
    const { stderr } = await execa('rustc', args, { cwd: folder.path, reject: false });
    const diagnostics = parseRustcOutput(stderr, new Set(['handler.rs'])).map(withCrateHelp);
    return diagnostics.filter(({ level }) => level === 'error');
  };
  /** The characters of a range. */
  const cut = (code: string, at: { line: number; column: number; end_column: number }) =>
    [...(code.split('\n')[at.line - 1] ?? '')].slice(at.column - 1, at.end_column - 1).join('');

  it('an error of rustc has places in code points, labels, and a suggestion that mends the source', async () => {
    const code = 'fn main() {\n\tlet _ = "ü𝄞e\u0301"; let text: String = "ä"; drop(text);\n}\n';
    const [error, ...others] = await errorsOf(code);
    expect(others).to.deep.equal([]);
    const texts = error?.labels.map((label) => [cut(code, label), label.is_primary]);
    expect(texts).to.have.deep.members([
      ['"ä"', true],
      ['String', false],
    ]);
    expect(error).to.include({ code: 'E0308', line: 2, end_line: 2 });
    const [{ edits: [edit] = [] } = {}] = error?.suggestions ?? [];
    const line = [...(code.split('\n')[1] ?? '')];
    line.splice((edit?.column ?? 0) - 1, 0, edit?.replacement ?? '');
    expect(await errorsOf(code.replace(/^\t.*$/m, line.join('')))).to.deep.equal([]);
  });

  it('an error of rustc inside a macro has its place in the source', async () => {
    const code =
      'macro_rules! twice { ($e:expr) => { $e + missing } }\nfn main() {\n    let _ = twice!(1);\n}\n';
    const [own] = await errorsOf(code);
    expect(own).to.include({ line: 1, column: 42, end_column: 49 });
    const [foreign] = await errorsOf('fn main() {\n    let s: u8 = format!("x");\n    drop(s);\n}\n');
    expect(foreign).to.include({ line: 2, column: 17, end_column: 29 });
  });

  it('an error of rustc names the field "dependencies" when a crate is missing, and only then', async () => {
    const HELP =
      /\n +\|\n += help: if `regex` is a crate, add it to the endpoint's "dependencies": \{"regex": "<version>"\}\n$/;
    for (const code of [
      'use regex::Regex;\nfn main() {}',
      'use regex as r;\nfn main() {}',
      'extern crate regex;\nfn main() {}',
      'fn main() { regex::Regex::new("a"); }',
      'fn main() { regex::regex!(); }',
    ]) {
      const [error] = await errorsOf(code);
      expect(error?.rendered, code).to.match(HELP);
      expect(error?.rendered.match(/help:/g), code).to.have.length(1);
      const [advice, ...others] = error?.suggestions ?? [];
      expect(advice, code).to.deep.equal({
        message: 'if `regex` is a crate, add it to the endpoint\'s "dependencies": {"regex": "<version>"}',
        applicability: null,
        edits: [],
      });
      expect(others, code).to.deep.equal([]);
    }
    for (const code of ['use std::foo::Bar;\nfn main() {}', 'fn main() { Regex::new(1); }']) {
      const [error] = await errorsOf(code);
      expect(JSON.stringify(error), code).not.to.include('dependencies');
    }
  });
});
