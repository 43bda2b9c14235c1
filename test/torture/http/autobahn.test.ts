/**
 * The cases of Autobahn's test suite for WebSockets, the usual one for implementations, against a gateway as it runs.
 * The suite's own runner needs Python 2; kosoku runs its cases with Python 3.
 */
import { join } from 'node:path';
import { expect } from 'chai';
import { execa } from 'execa';
import { type Stack, startStack } from '../../support/processes.js';
import { SERVER_CACHE } from '../../support/server-cache.js';
import { SOCKETS } from '../../support/streaming-sources.js';
import { tempDir } from '../../support/temp.js';

const KOSOKU = join(SERVER_CACHE, 'kosoku-0.1.0');
/** Compression of messages (RFC 7692), which the gateway does not offer. */
const LEFT_OUT = ['12.*', '13.*'];
/** Those that are left. */
const CASES = 301;
/** Longer than the longest message of the suite, 16 MiB. */
const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

describe("the cases of Autobahn's test suite", function () {
  this.timeout(900_000);
  let stack: Stack;
  let folder: Awaited<ReturnType<typeof tempDir>>;

  before(async () => {
    folder = await tempDir('autobahn');
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    await stack.deploy({
      path: '/echo',
      code: SOCKETS,
      policies: { websocket: { max_message_bytes: MAX_MESSAGE_BYTES } },
    });
  });
  after(async () => {
    await stack?.close();
    await folder?.remove();
  });

  it("a gateway passes the cases of Autobahn's test suite for WebSockets", async () => {
    const excluded = LEFT_OUT.flatMap((cases) => ['--exclude', cases]);
    const program = 'import kosoku._cli; kosoku._cli.main()';
    const { exitCode, all } = await execa(
      'python3',
      ['-c', program, '--outdir', folder.path, ...excluded, `${stack.gatewayUrl}/echo`],
      { all: true, reject: false, env: { PYTHONPATH: KOSOKU } },
    );
    expect(exitCode, all).to.equal(0);
    expect(all).to.contain(`${CASES} cases passed`);
  });
});
