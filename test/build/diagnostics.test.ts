import { expect } from 'chai';
import fc from 'fast-check';
import {
  parseRustcOutput,
  plain,
  renderDiagnostics,
  withoutMachinePaths,
} from '../../src/build/diagnostics.js';

const span = (file: string, line: number, column: number, more: Record<string, unknown> = {}) => ({
  file_name: file,
  line_start: line,
  column_start: column,
  line_end: line,
  column_end: column + 3,
  is_primary: true,
  ...more,
});
const message = (more: Record<string, unknown>) =>
  JSON.stringify({
    $message_type: 'diagnostic',
    level: 'error',
    message: 'mismatched types',
    code: { code: 'E0308', explanation: 'long' },
    spans: [span('handler.rs', 7, 5)],
    children: [],
    rendered: 'error[E0308]: mismatched types\n --> handler.rs:7:5\n',
    ...more,
  });
const parse = (...lines: string[]) =>
  parseRustcOutput(lines.join('\n'), new Set(['handler.rs', 'src/common.rs']));

describe('compiler diagnostics', () => {
  it('reads level, code, message, place and text of a compiler diagnostic', () => {
    expect(parse(message({}))).to.deep.equal([
      {
        level: 'error',
        code: 'E0308',
        message: 'mismatched types',
        file: 'handler.rs',
        line: 7,
        column: 5,
        end_line: 7,
        end_column: 8,
        labels: [
          {
            file: 'handler.rs',
            line: 7,
            column: 5,
            end_line: 7,
            end_column: 8,
            text: null,
            is_primary: true,
          },
        ],
        suggestions: [],
        rendered: 'error[E0308]: mismatched types\n --> handler.rs:7:5\n',
      },
    ]);
  });

  it('reads the primary place of a diagnostic, and for a macro the line of the author', () => {
    const [primary] = parse(
      message({ spans: [span('handler.rs', 1, 1, { is_primary: false }), span('handler.rs', 9, 3)] }),
    );
    expect(primary).to.include({ line: 9, column: 3 });
    const inMacro = span('/sdk/macros.rs', 50, 9, {
      expansion: { span: span('/sdk/outer.rs', 2, 2, { expansion: { span: span('handler.rs', 12, 1) } }) },
    });
    expect(parse(message({ spans: [inMacro] }))[0]).to.include({ line: 12, column: 1 });
    expect(parse(message({ spans: [span('/sdk/macros.rs', 50, 9)] }))[0]).to.include({
      line: null,
      column: null,
    });
    expect(parse(message({ spans: [] }))[0]).to.include({ line: null, column: null });
  });

  it('reads labels and suggestions of a diagnostic, if they are wholly in the source of the handler', () => {
    const suggested = (file: string, line: number, replacement: string) =>
      span(file, line, 1, { suggested_replacement: replacement, suggestion_applicability: 'MaybeIncorrect' });
    const edit = (line: number, replacement: string) => ({
      ...{ file: 'handler.rs', line, column: 1, end_line: line, end_column: 4 },
      replacement,
    });
    const help = (text: string, spans: unknown[]) => ({ level: 'help', message: text, spans });
    const [read] = parse(
      message({
        spans: [
          span('handler.rs', 7, 5, { label: 'expected `String`' }),
          span('/sdk/lib.rs', 1, 1, { is_primary: false, label: 'elsewhere' }),
        ],
        children: [
          help('one change', [suggested('handler.rs', 1, 'a'), suggested('handler.rs', 2, 'b')]),
          help('either', [suggested('handler.rs', 3, 'c'), suggested('handler.rs', 3, 'd')]),
          help('half of it elsewhere', [suggested('handler.rs', 4, 'e'), suggested('/sdk/lib.rs', 5, 'f')]),
          help('too long', [suggested('handler.rs', 6, 'x'.repeat(100_000))]),
          help('nothing to change', [span('handler.rs', 6, 1)]),
        ],
      }),
    );
    expect(read?.labels.map(({ line, text }) => [line, text])).to.deep.equal([[7, 'expected `String`']]);
    const applicability = 'MaybeIncorrect';
    expect(read?.suggestions).to.deep.equal([
      { message: 'one change', applicability, edits: [edit(1, 'a'), edit(2, 'b')] },
      { message: 'either', applicability, edits: [edit(3, 'c')] },
      { message: 'either', applicability, edits: [edit(3, 'd')] },
    ]);
  });

  it('reads places in all files of a source, also where the compiler takes a way round to them', () => {
    const [direct, around, elsewhere] = parse(
      message({ spans: [span('src/common.rs', 3, 1)] }),
      message({ spans: [span('tests/../src/common.rs', 4, 1)] }),
      message({ spans: [span('src/other.rs', 5, 1)] }),
    );
    expect(direct).to.include({ file: 'src/common.rs', line: 3 });
    expect(around).to.include({ file: 'src/common.rs', line: 4 });
    expect(elsewhere).to.include({ file: null, line: null });
  });

  it('leaves out redundant messages of the compiler', () => {
    const noise = [
      message({ message: 'aborting due to 2 previous errors; 1 warning emitted', spans: [], code: null }),
      message({ level: 'warning', message: '1 warning emitted', spans: [], code: null }),
      message({
        level: 'failure-note',
        message: 'For more information about this error, try ...',
        code: null,
      }),
      JSON.stringify({ $message_type: 'artifact', artifact: 'handler', emit: 'link' }),
    ];
    expect(parse(...noise, '', '  ')).to.deep.equal([]);
  });

  it('keeps other output of the compiler, such as that of a linker', () => {
    expect(parse('collect2: error: ld returned 1 exit status', '{not json')).to.deep.equal([
      plain('collect2: error: ld returned 1 exit status'),
      plain('{not json'),
    ]);
  });

  it('limits the number of diagnostics, and the length of their text', () => {
    expect(parse(...Array.from({ length: 1000 }, () => message({})))).to.have.length(100);
    const text = renderDiagnostics([plain('x'.repeat(300_000))]);
    expect(text.length).to.be.below(140_000);
    expect(text).to.match(/\(shortened\)$/);
  });

  it('renders diagnostics one after the other, as a terminal would', () => {
    expect(renderDiagnostics([plain('first\n'), plain('second\n\n')])).to.equal('first\n\nsecond');
    expect(renderDiagnostics([])).to.equal('');
  });

  it('replaces folders in a diagnostic by public names, and paths of crates by the names of the crates', () => {
    const clean = (text: string) =>
      withoutMachinePaths(
        [plain(text)],
        [
          ['/srv/a+b', 'sets'],
          ['/srv/a+b/sdk', 'sdk'],
        ],
      )[0];
    const texts = {
      '--> /srv/a+b/sdk/src/lib.rs:1:2': '--> sdk/src/lib.rs:1:2',
      '(/srv/a+b) `/srv/a+b/x` /srv/a+bc /srv/a+b.c /srv/a+b.': '(sets) `sets/x` /srv/a+bc /srv/a+b.c sets.',
      '--> /home/me/.cargo/registry/src/registry-1949/serde-1.0.2/src/de.rs:7:1':
        '--> serde-1.0.2/src/de.rs:7:1',
      '::: /home/me/.rustup/toolchains/x/lib/rustlib/src/rust/library/core/src/a.rs:1':
        '::: library/core/src/a.rs:1',
    };
    for (const [text, cleaned] of Object.entries(texts))
      expect(clean(text)).to.deep.equal({ ...plain(cleaned) });
  });

  it('replaces folders in each text of a diagnostic', () => {
    const at = { line: 1, column: 1, end_line: 1, end_column: 2 };
    const withText = (text: string) => ({
      ...plain(text),
      labels: [{ ...at, text, is_primary: true }],
      suggestions: [{ message: text, applicability: null, edits: [{ ...at, replacement: 'x' }] }],
    });
    expect(withoutMachinePaths([withText('in /srv/a')], [['/srv/a', 'sets']])).to.deep.equal([
      withText('in sets'),
    ]);
  });

  it('replaces folders in time that is proportional to the length of words', () => {
    // The square of it would run over mocha's limit.
    const text = `${'x/'.repeat(60_000)} ${'/registry/src/a'.repeat(8_000)}`;
    expect(withoutMachinePaths([plain(text)], [['/srv', 'srv']])[0]?.message).to.be.a('string');
  });

  it('reads diagnostics as text of limited length that a database can store', () => {
    const stored = parse(
      message({ message: 'a\0b \ud800', rendered: 'a\0b', spans: [span('handler.rs', 1.5, 1)] }),
    )[0];
    expect(stored).to.include({ message: 'a\ufffdb \ufffd', rendered: 'a\ufffdb', line: null });
    const all = parse(...Array.from({ length: 100 }, () => message({ rendered: 'x'.repeat(200_000) })));
    expect(all.length).to.be.within(5, 20);
    expect(all[0]?.rendered).to.match(/\(shortened\)$/);
  });

  it('reads any output of the compiler without failing', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string(), fc.json(), fc.constant(message({})))), (lines) => {
        for (const { level, message: text, rendered } of parse(...lines)) {
          expect([typeof level, typeof text, typeof rendered]).to.deep.equal(['string', 'string', 'string']);
        }
      }),
    );
  });
});
