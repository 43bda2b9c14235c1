/** How long the log is kept: by age and by size, as the API shows it, dropped by a real worker. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { LogEntry } from '../../src/model/log-entry.js';
import { openDatabase } from '../../src/store/database.js';
import { ensureLogPartition, hourOf } from '../../src/store/log-partitions.js';
import { addLogWriter, databaseTime, writeLogs } from '../../src/store/log-writing.js';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import type { LogItem } from '../support/log-tail.js';
import { type Stack, startStack } from '../support/processes.js';

const HOUR_MS = 3_600_000;
const MEBIBYTE = 1024 * 1024;

describe('retention of the log', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack({
      env: { LOG_RETENTION_DAYS: '1', LOG_RETENTION_MB: '16' },
      processes: ['web'],
    });
  });
  after(() => stack?.close());

  it('drops entries of the log that are too old, and the oldest ones when the log is too large', async () => {
    const store = openDatabase(stack.databaseUrl, () => undefined);
    try {
      const now = await databaseTime(store);
      const writer = await addLogWriter(store, randomUUID());
      let number = 0;
      const endpointId = randomUUID();
      const write = async (search: string, hours: number, megabytes: number) => {
        const at = now - hours * HOUR_MS;
        await ensureLogPartition(store, hourOf(at));
        // Random, so that it is not compressed.
        const texts = Array.from({ length: megabytes * 16 }, () =>
          Array.from({ length: MEBIBYTE / 16 / 36 }, () => randomUUID()).join(''),
        );
        const entries = [search, ...texts].map((message): LogEntry & { number: number } => ({
          ...{ at, kind: 'output', level: 'info', endpointId, version: 1, requestId: null },
          ...{ message, fields: null, request: null, number: ++number },
        }));
        await writeLogs(store, writer, entries);
      };
      await write('kept: too old', 50, 0);
      await write('kept: the oldest of too much', 20, 9);
      await write('kept: not too much', 10, 9);
      await write('kept: new', 0, 1);
    } finally {
      await store.close();
    }
    const kept = async () => {
      const query = 'search=kept&since=2020-01-01T00:00:00Z';
      const { items } = expectData<{ items: LogItem[] }>(await stack.api.get(`/api/logs?${query}`));
      return items.map(({ message }) => message.slice('kept: '.length));
    };
    expect(await kept()).to.have.length(4);
    await stack.start('worker');
    await eventually(async () => expect(await kept()).to.deep.equal(['new', 'not too much']));
  });
});
