/**
 * The tours of README.md and of docs/TOUR-CURL.md, as they stand there: their commands are run, and end where they say.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import type { LogItem } from '../support/log-tail.js';
import { type Stack, startStack } from '../support/processes.js';
import { type TempDir, tempDir } from '../support/temp.js';

const [, TOUR = ''] =
  /# A tour with curl(.*?)\*\*6\. Use a service/s.exec(readFileSync('docs/TOUR-CURL.md', 'utf8')) ?? [];
const [, CLI_TOUR = ''] =
  /## A tour in five minutes(.*?)\*\*Look around/s.exec(readFileSync('README.md', 'utf8')) ?? [];
/** The commands of a tour but for the first ones, which say where the service is. */
const commandsOf = (tour: string) =>
  [...tour.matchAll(/```sh\n(.*?)```/gs)].map(([, commands = '']) => commands).slice(1);

describe('the tour of README.md', function () {
  this.timeout(180_000);
  let stack: Stack;
  let folder: TempDir;
  let output: string;
  before(async () => {
    folder = await tempDir('tour');
    stack = await startStack();
    const script = `set -eu -o pipefail\n${commandsOf(CLI_TOUR).join('\n')}`.replaceAll(
      'http://localhost:8080',
      stack.gatewayUrl.replace('127.0.0.1', 'localhost'),
    );
    const env = {
      ...process.env,
      PATH: `${resolve('node_modules/.bin')}:${process.env['PATH']}`,
      XDG_CONFIG_HOME: folder.path,
      EDGE_URL: stack.apiUrl,
    };
    ({ stdout: output } = await promisify(execFile)('bash', ['-c', script], { cwd: folder.path, env }));
  });
  after(async () => {
    await stack?.close();
    await folder?.remove();
  });

  it('serves handlers and rolls one back by the commands of the tour of README.md', () => {
    expect(output).to.include('{"message":"Hello, Ada!"}').and.include('{"message":"Servus, Ada!"}');
    expect(output).to.include('HTTP/1.1 500').and.include('Version 2 serves');
    expect(output)
      .to.match(/^3 .*no short names$/m)
      .and.match(/^2 +100 % .*as in Vienna$/m);
    expect(output).to.include('{"page":"home","visits":1}');
  });

  it('shows the line of code of a failed request in the tour of README.md', () => {
    const [, place] = /\(`(handler\.rs:\d+:\d+)`\), and its rollback/.exec(CLI_TOUR) ?? [];
    expect(place).to.be.a('string');
    expect(output).to.include(`too short (${place})`);
  });

  it('needs at most half as many lines in the tour of README.md as in the tour with curl', () => {
    const lines = (tour: string) => commandsOf(tour).join('').split('\n').length;
    const withCurl = lines(readFileSync('docs/TOUR-CURL.md', 'utf8'));
    expect(lines(CLI_TOUR)).to.be.at.most(withCurl / 2);
  });
});

describe('the tour with curl', function () {
  this.timeout(180_000);
  let stack: Stack;
  let folder: TempDir;
  let output: string;
  before(async () => {
    folder = await tempDir('tour');
    stack = await startStack();
    const variables = `set -eu -o pipefail\nAPI=${stack.apiUrl}/api\nGATEWAY=${stack.gatewayUrl}\n`;
    // A crate is a matter of its own; here it would be downloaded.
    const script = `${variables}${commandsOf(TOUR).join('\n')}`.replace(
      'dependencies: {regex: "1"}',
      'dependencies: {}',
    );
    ({ stdout: output } = await promisify(execFile)('bash', ['-c', script], { cwd: folder.path }));
  });
  after(async () => {
    await stack?.close();
    await folder?.remove();
  });

  it('serves a handler and rolls it back by the commands of the tour with curl', () => {
    const prices = [...output.matchAll(/\{"item":"tea","price":(\d+)\}/g)].map(([, price]) => price);
    expect(prices).to.deep.equal(['15', '12', '12']);
    expect(output).to.include('order at least one piece');
  });

  it('shows the line of code of a failed request in the tour with curl', async () => {
    const [, requestId] =
      /^x-request-id: (\S+)\r?$/im.exec(output.slice(output.indexOf('HTTP/1.1 500'))) ?? [];
    const [, place] = /\(`(handler\.rs:\d+:\d+)`\), and its rollback/.exec(TOUR) ?? [];
    expect([requestId, place]).not.to.include(undefined);
    await eventually(async () => {
      const { items } = expectData<{ items: LogItem[] }>(
        await stack.api.get(`/api/logs?level=error&kind=output&request_id=${requestId}`),
      );
      expect(items.map(({ fields }) => fields?.['place'])).to.deep.equal([place]);
    });
    expect(output).to.include(`"place":"${place}"`);
  });
});
