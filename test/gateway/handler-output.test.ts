import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { captureOutput } from '../../src/gateway/handler-output.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';

describe('output of a handler', () => {
  const capture = () => {
    const logged = createTestLog();
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const output = captureOutput({ stdout, stderr, records: null }, logged.log);
    return { logged, stdout, stderr, output };
  };

  it('is logged line by line, however it is chunked, with the name of its stream', async () => {
    const { logged, stdout, stderr, output } = capture();
    for (const piece of ['one\ntw', 'o\r\n', '\u00e4'.repeat(3), '\nlast']) stdout.write(piece);
    stdout.end();
    stderr.end('wrong\n');
    await output.ended;
    const lines = logged.lines.map(({ msg, stream }) => `${String(stream)} ${msg}`);
    expect(lines).to.have.same.members([
      'stdout one',
      'stdout two',
      'stdout \u00e4\u00e4\u00e4',
      'stdout last',
      'stderr wrong',
    ]);
    expect(output.lastLines()).to.include('last').and.include('wrong');
  });

  it('contains no characters that PostgreSQL refuses', async () => {
    const { stdout, stderr, output } = capture();
    stdout.end(`a\0b\n${'x'.repeat(4_095)}\u{1f600}\n`);
    stderr.end();
    await output.ended;
    expect(output.lastLines()).to.equal(`a\ufffdb\n${'x'.repeat(4_095)}\ufffd...`);
  });

  it('is cut when a line has no end', async () => {
    const { logged, stdout, stderr, output } = capture();
    for (let count = 0; count < 100; count++) stdout.write('x'.repeat(10_000));
    stdout.end('\nnext\n');
    stderr.end();
    await output.ended;
    expect(logged.lines).to.have.length(2);
    expect(logged.lines[0]?.msg?.length).to.be.below(5_000);
    expect(logged.lines[1]?.msg).to.equal('next');
  });

  it('is read with pauses, so that a handler that prints without end blocks', async () => {
    const { stdout, stderr, output } = capture();
    const CHUNKS = 100;
    let taken = 0;
    for (let count = 0; count < CHUNKS; count++) stdout.write('x'.repeat(64 * 1024), () => taken++);
    await eventually(() => expect(taken).to.be.above(16));
    expect(taken).to.be.below(CHUNKS);
    stdout.destroy();
    stderr.end();
    await output.ended;
  });

  it('is logged up to a number of lines a second, and the rest is counted', async () => {
    const { logged, stdout, stderr, output } = capture();
    const printed = 20_000;
    stdout.end('line\n'.repeat(printed));
    stderr.end();
    await output.ended;
    const shown = logged.lines.filter(({ msg }) => msg === 'line').length;
    const dropped = logged.lines.reduce((sum, line) => sum + Number(line['dropped'] ?? 0), 0);
    expect(shown + dropped).to.equal(printed);
    expect(dropped).to.be.above(0);
    expect(output.lastLines().split('\n')).to.have.length(20);
  });
});
