/** A front without free file descriptors. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const source = (path: string) => new URL(`../../src/${path}`, import.meta.url).href;

/** Uses up all file descriptors, routes an endpoint to a listening socket, and closes them after the first error. */
const MODULE = `
  import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
  import { createServer } from 'node:net';
  import { FrontEndpoint } from '${source('gateway/front-endpoint.js')}';
  import { MemoryBudget } from '${source('util/memory-budget.js')}';
  const folder = mkdtempSync('/tmp/edge-gateway-front-');
  const socket = folder + '/handler.sock';
  const server = createServer(() => undefined);
  await new Promise((resolve) => server.listen(socket, resolve));
  const held = [];
  const said = { lost: [], complaints: [] };
  const events = {
    deadlineExceeded: () => undefined,
    connectionLost: (...args) => said.lost.push(args),
    outOfDescriptors: ({ code }) => {
      said.complaints.push(code);
      for (const fd of held.splice(0)) closeSync(fd);
    },
  };
  const endpoint = new FrontEndpoint('id', events, new MemoryBudget(1e6), {}, { concurrentRequests: 1 });
  try { for (;;) held.push(openSync('/dev/null', 'r')); } catch {}
  await endpoint.setHandler({ kind: 'running', instance: { id: 1, socket } })
    .catch((error) => { said.failed = error.code; for (const fd of held.splice(0)) closeSync(fd); });
  rmSync(folder, { recursive: true });
  console.log(JSON.stringify(said));
  process.exit();`;

describe('a front without file descriptors', () => {
  it('does not report the handler as lost, and connects when descriptors are free', () => {
    const command = [
      '-c',
      'ulimit -n 64; exec "$0" "$@"',
      process.execPath,
      '--input-type=module',
      '-e',
      MODULE,
    ];
    const { stdout, stderr } = spawnSync('/bin/sh', command, {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      encoding: 'utf8',
    });
    expect(stderr).to.equal('');
    expect(JSON.parse(stdout)).to.deep.equal({ lost: [], complaints: ['EMFILE'] });
  });
});
