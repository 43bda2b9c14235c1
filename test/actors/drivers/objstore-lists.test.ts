/** Lists of faulty servers, which no real server returns. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Connection } from '../../../src/actors/driver.js';
import { objstoreDriver } from '../../../src/actors/drivers/objstore/driver.js';
import { readListPage } from '../../../src/actors/drivers/objstore/listing.js';
import { parseServiceConfig } from '../../../src/model/service-configs.js';
import { type CallableConnection, openCallable, pendingCall } from '../../support/callable-connection.js';
import { expectServiceError } from '../../support/driver-calls.js';
import { eventually } from '../../support/eventually.js';

/** The XML of a page, by its number; the first one is asked for when connecting. */
type Pages = (at: number) => string;

const page = (keys: readonly string[], next?: string) =>
  `<ListBucketResult><IsTruncated>${next !== undefined}</IsTruncated>` +
  `${next === undefined ? '' : `<NextContinuationToken>${next}</NextContinuationToken>`}` +
  `${keys.map((key) => `<Contents><Key>${key}</Key><Size>1</Size></Contents>`).join('')}</ListBucketResult>`;

describe('driver objstore: lists without end', () => {
  let server: Server | undefined;
  let connection: CallableConnection | undefined;
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
    connection = await openCallable(objstoreDriver, config);
    return connection;
  };
  const list = (from: CallableConnection, args: object = {}) => from.call(pendingCall('list', args));

  const listAll = async ({ files }: Connection) => {
    if (!files) throw new Error('An object storage has files');
    return files.list('');
  };

  it('fails a list of objects without end when a page is repeated', async () => {
    const from = await serve((at) => page([`key-${at}`], at % 2 === 0 ? 'even' : 'odd'));
    await expectServiceError(list(from), 'backend', /has no end/);
    await expectServiceError(listAll(from), 'backend', /has no end/);
  });

  it('fails a list of objects without end when it exceeds the size of an answer', async () => {
    const key = 'k'.repeat(1000);
    const keys = Array.from({ length: 1000 }, () => key);
    const from = await serve((at) => page(keys, `token-${at}`));
    await expectServiceError(list(from), 'invalid', /67108864 is the most/);
    expect(asked).to.be.below(100);
    await expectServiceError(listAll(from), 'invalid', /ask for a longer prefix/);
    expect(asked).to.be.below(200);
  });

  it('stops reading a list of objects without end when its call is aborted', async () => {
    const from = await serve((at) => page([], `token-${at}`));
    const call = pendingCall('list', {});
    const listing = expectServiceError(from.call(call), 'unavailable', /./);
    await eventually(() => expect(asked).to.be.above(3));
    call.abort();
    await listing;
    const then = asked;
    for (let i = 0; i < 3; i++) await from.test();
    // One request may have been in flight.
    expect(asked).to.be.within(then + 3, then + 4);
  });

  it('fails a list of objects when a page of it is too large', async () => {
    const key = 'k'.repeat(17 * 1024 * 1024);
    const from = await serve((at) => (at === 0 ? page([]) : page([key])));
    await expectServiceError(list(from), 'backend', /more than 16 MiB as one page/);
  });

  it('lists no more objects than requested when the server sends more', async () => {
    const from = await serve(() => page(['a', 'b', 'c'], 'token'));
    const { payload } = await list(from, { limit: 2 });
    const keys = (JSON.parse(String(payload)) as { key: string }[]).map(({ key }) => key);
    expect(keys).to.deep.equal(['a', 'b']);
  });

  it('reads a page of a list of objects in linear time', () => {
    // With quadratic time, this would exceed the timeout of mocha.
    expect(readListPage('<Contents>'.repeat(1_000_000)).objects).to.deep.equal([]);
  });
});
