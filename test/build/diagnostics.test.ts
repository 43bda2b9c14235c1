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
const parse = (...lines: string[]) => parseRustcOutput(lines.join('\n'), 'handler.rs');

describe('compiler diagnostics', () => {
  it('reads level, code, message, place and text', () => {
    expect(parse(message({}))).to.deep.equal([
      {
        level: 'error',
        code: 'E0308',
        message: 'mismatched types',
        line: 7,
        column: 5,
        rendered: 'error[E0308]: mismatched types\n --> handler.rs:7:5\n',
      },
    ]);
  });

  it('takes the primary place, and of a macro the line of the author', () => {
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

  it('leaves out what says nothing new', () => {
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

  it("keeps other words, a linker's for instance, as they are", () => {
    expect(parse('collect2: error: ld returned 1 exit status', '{not json')).to.deep.equal([
      plain('collect2: error: ld returned 1 exit status'),
      plain('{not json'),
    ]);
  });

  it('stops at what nobody reads', () => {
    expect(parse(...Array.from({ length: 1000 }, () => message({})))).to.have.length(100);
    const text = renderDiagnostics([plain('x'.repeat(300_000))]);
    expect(text.length).to.be.below(140_000);
    expect(text).to.match(/\(shortened\)$/);
  });

  it('renders one after the other, as a terminal would', () => {
    expect(renderDiagnostics([plain('first\n'), plain('second\n\n')])).to.equal('first\n\nsecond');
    expect(renderDiagnostics([])).to.equal('');
  });

  it('names folders as they are called towards others, and crates by their name', () => {
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

  it('takes no time over long words', () => {
    const started = performance.now();
    const text = `${'x/'.repeat(60_000)} ${'/registry/src/a'.repeat(8_000)}`;
    expect(withoutMachinePaths([plain(text)], [['/srv', 'srv']])[0]?.message).to.be.a('string');
    // The square of it would be minutes.
    expect(performance.now() - started).to.be.below(5_000);
  });

  it('keeps what a database can store', () => {
    const stored = parse(
      message({ message: 'a\0b \ud800', rendered: 'a\0b', spans: [span('handler.rs', 1.5, 1)] }),
    )[0];
    expect(stored).to.include({ message: 'a\ufffdb \ufffd', rendered: 'a\ufffdb', line: null });
    const all = parse(...Array.from({ length: 100 }, () => message({ rendered: 'x'.repeat(200_000) })));
    expect(all.length).to.be.within(5, 20);
    expect(all[0]?.rendered).to.match(/\(shortened\)$/);
  });

  it('reads any output without failing', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string(), fc.json(), fc.constant(message({})))), (lines) => {
        for (const { level, message: text, rendered } of parse(...lines)) {
          expect([typeof level, typeof text, typeof rendered]).to.deep.equal(['string', 'string', 'string']);
        }
      }),
    );
  });
});
