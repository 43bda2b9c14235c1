/** Object storages that send bodies without end. */
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { objstoreDriver } from '../../../src/actors/drivers/objstore/driver.js';
import { parseServiceConfig } from '../../../src/model/service-configs.js';
import { type CallableConnection, openCallable, pendingCall } from '../../support/callable-connection.js';
import { expectServiceError } from '../../support/driver-calls.js';
import { endless, inTurn, type LyingServer, startLyingServer, thenZeros } from '../../support/lies/lie.js';

const ANSWER_BYTES = 1024 ** 2;
const PAGE = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n<ListBucketResult');
/** No length: its body ends with the connection. */
const headOf = (status: number) => Buffer.from(`HTTP/1.1 ${status} Such\r\n\r\n`);

describe('driver objstore: bodies without end', () => {
  let server: LyingServer;
  let connection: CallableConnection | undefined;
  afterEach(async () => {
    await connection?.close();
    connection = undefined;
    await server.close();
  });

  /** Connected to a server that answers so from the second request on. */
  async function connected(status: number): Promise<CallableConnection> {
    const lie = thenZeros(headOf(status));
    let requests = 0;
    server = await startLyingServer({
      serve: inTurn((socket) => void (requests++ === 0 ? socket.write(PAGE) : lie(socket))),
    });
    return connectedTo(server.port);
  }
  async function connectedTo(port: number): Promise<CallableConnection> {
    const config = parseServiceConfig('objstore', {
      endpoint: `127.0.0.1:${port}`,
      access_key: 'a',
      secret_key: 's',
      bucket: 'files',
    });
    connection = await openCallable(objstoreDriver, config, { answerBytes: ANSWER_BYTES });
    return connection;
  }
  const getFrom = (from: CallableConnection) => from.call(pendingCall('get', { key: 'k' }));

  it('fails the call for an object without end at the size of an answer', async () => {
    const reason = /has at least \d+ bytes, and handlers get at most 1048576 \(SERVICE_ANSWER_MB/;
    await expectServiceError(getFrom(await connected(200)), 'invalid', reason);
  });

  it('stops reading an error of an object storage after 1 MiB', async () => {
    await expectServiceError(getFrom(await connected(403)), 'backend', /more than 1 MiB with status 403/);
  });

  it('stops reading the response of an object storage to a put after 1 MiB', async () => {
    const from = await connected(200);
    const put = from.call(pendingCall('put', { key: 'k' }, 'content'));
    await expectServiceError(put, 'backend', /more than 1 MiB with status 200/);
  });

  it('refuses an object storage that sends interim responses without end', async () => {
    const hints = Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000));
    server = await startLyingServer({ serve: inTurn(endless(hints, hints)) });
    await expectServiceError(connectedTo(server.port), 'unavailable', /more to come all the time/);
  });

  it('stops reading the response of an object storage to an upload in parts after 1 MiB', async () => {
    const { files } = await connected(200);
    if (!files) throw new Error('An object storage has files');
    const size = 9 * 1024 ** 2;
    const content = Readable.from([Buffer.alloc(size)]);
    const failed = files.write('k', content, size, 'text/plain').catch((thrown: unknown) => thrown);
    expect(String(await failed)).to.match(/more than 1 MiB with status 200/);
  });
});
