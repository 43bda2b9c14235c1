/** The tour of README.md, as it stands there: its commands are run, and end where it says. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import type { LogItem } from '../support/log-tail.js';
import { type Stack, startStack } from '../support/processes.js';
import { type TempDir, tempDir } from '../support/temp.js';

const README = readFileSync('README.md', 'utf8');
const [, TOUR = ''] = /## A tour in five minutes(.*?)\*\*6\. Use a service/s.exec(README) ?? [];
/** Its commands but for the first ones, which say where the service is. */
const COMMANDS = [...TOUR.matchAll(/```sh\n(.*?)```/gs)].map(([, commands = '']) => commands).slice(1);

describe('the tour of README.md', function () {
  this.timeout(180_000);
  let stack: Stack;
  let folder: TempDir;
  let output: string;
  before(async () => {
    folder = await tempDir('tour');
    stack = await startStack();
    const variables = `set -eu -o pipefail\nAPI=${stack.apiUrl}/api\nGATEWAY=${stack.gatewayUrl}\n`;
    // A crate is a matter of its own; here it would be downloaded.
    const script = `${variables}${COMMANDS.join('\n')}`.replace(
      'dependencies: {regex: "1"}',
      'dependencies: {}',
    );
    ({ stdout: output } = await promisify(execFile)('bash', ['-c', script], { cwd: folder.path }));
  });
  after(async () => {
    await stack?.close();
    await folder?.remove();
  });

  it('serves the handler, and has the way back', () => {
    const prices = [...output.matchAll(/\{"item":"tea","price":(\d+)\}/g)].map(([, price]) => price);
    expect(prices).to.deep.equal(['15', '12', '12']);
    expect(output).to.include('order at least one piece');
  });

  it('leads from a failed request to its line of code', async () => {
    const [, requestId] =
      /^x-request-id: (\S+)\r?$/im.exec(output.slice(output.indexOf('HTTP/1.1 500'))) ?? [];
    const [, place] = /\(`(handler\.rs:\d+:\d+)`\), and the way back/.exec(TOUR) ?? [];
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
