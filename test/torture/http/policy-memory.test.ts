/** What compiled policies may take of the front's memory, however many endpoints have some. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { expectData } from '../../support/expect.js';
import { ANYTHING } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { frontOf } from '../../support/process-state.js';
import { type Stack, startStack } from '../../support/processes.js';

const ENDPOINTS = 61;
/** Each takes some 5 MiB: together they are more than a gigabyte. */
const PATTERNS = 5;
const MOST_MB = 100;
const AT_ONCE = 4;

describe('the memory of policies', function () {
  this.timeout(240_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack.close());

  const each = async (work: (at: number) => Promise<void>) => {
    let next = 0;
    const works = async () => {
      while (next < ENDPOINTS) await work(next++);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, works));
  };
  const memoryMb = () => {
    const front = frontOf(stack.processes.get('gateway')?.pid ?? 0);
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${front}/status`, 'utf8'))?.[1]) / 1024;
  };

  it(`${ENDPOINTS} policies with ${PATTERNS} costly patterns each grow the front by ${MOST_MB} MiB at most`, async () => {
    // Compiled once: the others find the executable.
    await stack.deploy({ path: '/p0', code: ANYTHING });
    await each(async (at) => {
      const id = await stack.deploy({ path: `/p${at}`, method: 'POST', code: ANYTHING });
      const parameters = Array.from({ length: PATTERNS }, (_, number) => ({
        ...{ in: 'query', name: `q${number}` },
        schema: { type: 'string', pattern: `^\\p{L}{95}a${number}b${at}$` },
      }));
      const policies = { validate: { mode: 'enforce', parameters } };
      expectData(await stack.api.put(`/api/endpoints/${id}`, { policies }));
    });
    const before = memoryMb();
    const query = Array.from({ length: PATTERNS }, (_, number) => `q${number}=x`).join('&');
    await each(async (at) => {
      const { status, text } = await call(`${stack.gatewayUrl}/p${at}?${query}`, { method: 'POST' });
      expect([status, JSON.parse(text).problems?.length], text).to.deep.equal([400, PATTERNS]);
    });
    expect(memoryMb() - before).to.be.below(MOST_MB);
  });
});
