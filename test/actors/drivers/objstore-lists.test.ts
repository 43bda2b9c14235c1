/** Lists of servers that are wrong, or have more than anybody can take: no server that one can install does this. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Connection } from '../../../src/actors/driver.js';
import { PendingCall } from '../../../src/actors/driver-call.js';
import { objstoreDriver } from '../../../src/actors/drivers/objstore.js';
import { readListPage } from '../../../src/actors/drivers/objstore-list.js';
import { parseServiceConfig } from '../../../src/service-configs.js';
import { expectServiceError } from '../../support/driver-calls.js';
import { eventually } from '../../support/eventually.js';
import { createTestLog } from '../../support/log.js';

/** The XML of a page, by its number; the first one is asked for when connecting. */
type Pages = (at: number) => string;

const page = (keys: readonly string[], next?: string) =>
  `<ListBucketResult><IsTruncated>${next !== undefined}</IsTruncated>` +
  `${next === undefined ? '' : `<NextContinuationToken>${next}</NextContinuationToken>`}` +
  `${keys.map((key) => `<Contents><Key>${key}</Key><Size>1</Size></Contents>`).join('')}</ListBucketResult>`;

describe('driver objstore: lists without end', () => {
  let server: Server | undefined;
  let connection: Connection | undefined;
  let asked = 0;

  afterEach(async () => {
    await connection?.close();
    server?.closeAllConnections();
    await new Promise((resolve) => server?.close(resolve));
  });

  const serve = async (pages: Pages) => {
    asked = 0;
    const started = createServer((_request, response) => {
      response.end(pages(asked));
      asked++;
    });
    server = started;
    await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve));
    const { port } = started.address() as AddressInfo;
    const config = parseServiceConfig('objstore', {
      endpoint: `127.0.0.1:${port}`,
      access_key: 'a',
      secret_key: 's',
      bucket: 'files',
    });
    connection = await objstoreDriver.connect(config, {
      signal: AbortSignal.timeout(10_000),
      log: createTestLog().log,
      onLost: (error) => expect.fail(error.message),
      sqliteDir: undefined,
    });
    return connection;
  };
  const list = (from: Connection, args: object = {}) =>
    from.call(new PendingCall('list', args, Buffer.alloc(0), 60_000));

  const listAll = async ({ files }: Connection) => {
    if (!files) throw new Error('An object storage has files');
    return files.list('');
  };

  it('end when a page comes again', async () => {
    const from = await serve((at) => page([`key-${at}`], at % 2 === 0 ? 'even' : 'odd'));
    await expectServiceError(list(from), 'backend', /has no end/);
    await expectServiceError(listAll(from), 'backend', /has no end/);
  });

  it('end when no answer could hold them', async () => {
    const key = 'k'.repeat(1000);
    const keys = Array.from({ length: 1000 }, () => key);
    const from = await serve((at) => page(keys, `token-${at}`));
    await expectServiceError(list(from), 'invalid', /67108864 is the most/);
    expect(asked).to.be.below(100);
    await expectServiceError(listAll(from), 'invalid', /ask for a longer prefix/);
    expect(asked).to.be.below(200);
  });

  it('end with their call', async () => {
    const from = await serve((at) => page([], `token-${at}`));
    const call = new PendingCall('list', {}, Buffer.alloc(0), 60_000);
    const listing = expectServiceError(from.call(call), 'unavailable', /./);
    await eventually(() => expect(asked).to.be.above(3));
    call.abort();
    await listing;
    const then = asked;
    for (let i = 0; i < 3; i++) await from.test();
    // One may have been on its way.
    expect(asked).to.be.within(then + 3, then + 4);
  });

  it('end when a page is larger than any can be', async () => {
    const key = 'k'.repeat(17 * 1024 * 1024);
    const from = await serve((at) => (at === 0 ? page([]) : page([key])));
    await expectServiceError(list(from), 'backend', /more than 16 MiB as one page/);
  });

  it('have no more objects than were asked for', async () => {
    const from = await serve(() => page(['a', 'b', 'c'], 'token'));
    const { payload } = await list(from, { limit: 2 });
    const keys = (JSON.parse(String(payload)) as { key: string }[]).map(({ key }) => key);
    expect(keys).to.deep.equal(['a', 'b']);
  });

  it('are read in time that grows with their length', () => {
    const started = performance.now();
    expect(readListPage('<Contents>'.repeat(200_000)).objects).to.deep.equal([]);
    expect(performance.now() - started).to.be.below(1_000);
  });
});
