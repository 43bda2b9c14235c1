import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { captureOutput } from '../../src/gateway/handler-output.js';
import { createTestLog } from '../support/log.js';

describe('output of a handler', () => {
  const capture = () => {
    const logged = createTestLog();
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    return { logged, stdout, stderr, output: captureOutput(stdout, stderr, logged.log) };
  };

  it('is logged line by line, however it is cut, with its stream', async () => {
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

  it('has nothing in it that PostgreSQL refuses', async () => {
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

  it('is not read faster than a gateway can afford', async () => {
    const { stdout, stderr, output } = capture();
    const megabytes = 3;
    let written = 0;
    const chunk = Buffer.alloc(64 * 1024, 'x');
    const began = performance.now();
    while (written < megabytes * 1024 * 1024) {
      written += chunk.length;
      if (!stdout.write(chunk)) await once(stdout, 'drain');
    }
    // Two seconds have to be over before the third megabyte is taken.
    expect(performance.now() - began).to.be.above(1_000);
    stdout.end();
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
