/** What `npm run test:shaken` does to processes. */
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { type TempDir, tempDir } from '../support/temp.js';

const SHAKE = fileURLToPath(new URL('../../../scripts/shake.cjs', import.meta.url));

/** Sends numbers to a server that sends them back, on a socket and by HTTP, and prints what has come. */
const TALK = `
  const http = require('node:http');
  const net = require('node:net');
  const numbers = Array.from({ length: 200 }, (_, at) => at + '\\n');
  const read = async (stream) => { let text = ''; for await (const piece of stream) text += piece; return text; };
  const echo = net.createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)).listen(0, () => {
    const web = http.createServer((request, response) => request.pipe(response)).listen(0, async () => {
      const socket = net.connect(echo.address().port);
      const request = http.request({ port: web.address().port, method: 'POST' });
      const response = new Promise((resolve) => request.once('response', resolve));
      for (const stream of [socket, request]) {
        for (const number of numbers) stream.write(number);
        stream.end();
      }
      const came = await Promise.all([read(socket), response.then(read)]);
      console.log(JSON.stringify(came.map((text) => text === numbers.join(''))));
      process.exit();
    });
  });
`;

/** Starts programs with an empty environment, one by a shell, and prints what they print: what was added to it. */
const START = `
  const { spawn } = require('node:child_process');
  const [, , ...programs] = process.argv;
  const start = (program) => new Promise((resolve) => {
    const child = spawn('/bin/sh', ['-c', 'exec "$@"', 'sh', ...program.split(' ')], { env: {} });
    let text = '';
    child.stdout.on('data', (piece) => { text += piece; }).once('close', () => resolve(text.trim()));
  });
  Promise.all(programs.map(start)).then((texts) => console.log(JSON.stringify(texts)));
`;
const SAY_IN_NODE = 'const { NODE_OPTIONS, LD_PRELOAD } = process.env; console.log(NODE_OPTIONS, LD_PRELOAD)';
const SAY = '#!/bin/sh\necho "$NODE_OPTIONS $LD_PRELOAD"';

describe('shaken processes', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('shaken');
  });
  after(() => folder.remove());

  const at = (name: string) => join(folder.path, name);
  const write = async (name: string, text: string) => {
    await mkdir(dirname(at(name)), { recursive: true });
    await writeFile(at(name), text, { mode: 0o755 });
  };
  const run = async (name: string, ...args: string[]) => {
    const env = { ...process.env, SHAKE_SEED: '1' };
    const all = ['--require', SHAKE, at(name), ...args];
    return JSON.parse((await promisify(execFile)(process.execPath, all, { env })).stdout) as unknown;
  };

  it('shaken processes get all that was sent to them, in its order, to its end', async () => {
    await write('dist/jobs/talk.js', TALK);
    expect(await run('dist/jobs/talk.js')).to.deep.equal([true, true]);
  });

  it('shaken processes shake those of the product that they start, and no others', async () => {
    await write('dist/jobs/start.js', START);
    const service = 'programs/0123456789abcdef/service.js';
    for (const name of ['dist/src/processes/say.js', 'dist/processes/service/service.js', service, 'say.js'])
      await write(name, SAY_IN_NODE);
    for (const name of ['dist/native/say', 'dist/native/launcher', 'say']) await write(name, SAY);
    const inNode = (name: string) => `${process.execPath} ${at(name)}`;
    expect(
      await run(
        'dist/jobs/start.js',
        ...['dist/src/processes/say.js', 'dist/processes/service/service.js', service, 'say.js'].map(inNode),
        ...['dist/native/say', 'dist/native/launcher', 'say'].map(at),
      ),
    ).to.deep.equal([
      ...Array(3).fill(`--require=${SHAKE} undefined`),
      'undefined undefined',
      ...[join(dirname(SHAKE), 'shake.so'), '', ''],
    ]);
  });

  it('shaken processes shake services, which the starter gives an environment of theirs', async () => {
    const START_ONE = `
      const { execFile } = require('node:child_process');
      const [, , file, settings] = process.argv;
      execFile(file, [settings], (error, stdout) => console.log(stdout));
    `;
    await write('dist/jobs/start-one.js', START_ONE);
    await write('dist/native/starter', '#!/bin/sh\necho "$1"');
    const settings = JSON.stringify({ records: '/records', environment: { TZ: 'UTC' } });
    const told = await run('dist/jobs/start-one.js', at('dist/native/starter'), settings);
    expect(told).to.have.property('records', '/records');
    expect((told as { environment: Record<string, string> }).environment).to.include({
      TZ: 'UTC',
      NODE_OPTIONS: `--require=${SHAKE}`,
      LD_PRELOAD: join(dirname(SHAKE), 'shake.so'),
    });
  });
});
