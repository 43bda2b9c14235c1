/**
 * Object files through the real processes: large ones, aborted ones, and what is left when a process is killed.
 */
import { createHash, type Hash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { expect } from 'chai';
import { type S3Backend, startS3Backend } from '../support/backends/s3.js';
import { eventually } from '../support/eventually.js';
import { expectFailure } from '../support/expect.js';
import { multipart } from '../support/form.js';
import { type ProcessName, type Stack, startStack } from '../support/processes.js';
import { activeService } from '../support/test-services.js';

const MIB = 1024 * 1024;
const LARGE_BYTES = 256 * MIB;
/** What a process may take on top of what it had, while such a file and eight slow readers pass through it. */
const GROWTH_LIMIT_MB = 64;
const BETWEEN = ['web', 'actor-host'] as const;

describe('object files through the processes', function () {
  this.timeout(300_000);
  let stack: Stack;
  let backend: S3Backend;
  let service: string;

  before(async () => {
    backend = await startS3Backend();
    stack = await startStack({ processes: ['web', 'actor-host'] });
    service = await activeService(stack.api, 'objstore', backend.config);
  });
  after(async () => {
    await stack?.close();
    await backend?.remove();
  });

  it('stores and returns an object file of 256 MiB with little memory', async () => {
    const before = await Promise.all(BETWEEN.map(peakMemoryMb));
    const sent = createHash('sha256');
    const answer = await upload('large.bin', LARGE_BYTES, sent);
    expect(await json(answer)).to.include({ key: 'large.bin', size: LARGE_BYTES });
    expect(answer.statusCode).to.equal(200);
    expect(await uploadsOnDisk()).to.deep.equal([]);

    const received = createHash('sha256');
    await pipeline(await download('large.bin'), received);
    expect(received.digest('hex')).to.equal(sent.digest('hex'));

    // Whoever reads nothing for now.
    const slow = await Promise.all(Array.from({ length: 8 }, () => download('large.bin')));
    await Promise.all(slow.map((answer) => once(answer, 'readable')));
    const again = createHash('sha256');
    await pipeline(await download('large.bin'), again);
    for (const answer of slow) answer.destroy();
    for (const [index, name] of BETWEEN.entries())
      expect((await peakMemoryMb(name)) - Number(before[index]), name).to.be.below(GROWTH_LIMIT_MB);
  });

  it('breaks off a download for the client when the object storage is stopped', async () => {
    const answer = await download('large.bin');
    await once(answer, 'readable');
    await backend.stop();
    const failure = await pipeline(answer, createHash('sha256')).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(Error);
    await backend.start();
    await eventually(async () => {
      expect((await stack.api.send('HEAD', '/api/minio/objects/large.bin')).status).to.equal(200);
    });
  });

  it('breaks off a download for the client when the actor host is killed', async () => {
    const answer = await download('large.bin');
    await once(answer, 'readable');
    await stack.processes.get('actor-host')?.end('SIGKILL');
    const failure = await pipeline(answer, createHash('sha256')).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(Error);
    await stack.start('actor-host');
    await eventually(async () => {
      expect((await stack.api.send('HEAD', '/api/minio/objects/large.bin')).status).to.equal(200);
    });
  });

  it('stops reading an object file from the storage when the client disconnects', async () => {
    const answer = await download('large.bin');
    await once(answer, 'readable');
    answer.destroy();
    // Deactivating waits for transfers under way.
    const { body } = await stack.api.post(`/api/services/${service}/deactivate`);
    expect(body).to.include({ success: true });
    await stack.api.post(`/api/services/${service}/activate`);
    expect((await stack.api.delete('/api/minio/objects/large.bin')).body).to.include({ deleted: true });
  });

  it('deletes the files of an upload to a killed web process when web starts again', async () => {
    const outgoing = startUpload('killed.bin', 50 * MIB);
    outgoing.on('error', () => undefined);
    outgoing.write(randomBytes(20 * MIB));
    await eventually(async () => expect(await uploadsOnDisk()).to.have.length(1));
    await stack.processes.get('web')?.end('SIGKILL');
    outgoing.destroy();
    expect(await uploadsOnDisk()).to.have.length(1);
    await stack.start('web');
    expect(await uploadsOnDisk()).to.deep.equal([]);
    expectFailure(await stack.api.get('/api/minio/objects/killed.bin'), 'not_found');
  });

  it('reports when no object storage is active, and when no actor host runs', async () => {
    await stack.api.post(`/api/services/${service}/deactivate`);
    expectFailure(await stack.api.get('/api/minio/objects'), 'no_object_storage');
    expectFailure(
      await stack.api.get(`/api/minio/objects?service=${service}`),
      'no_object_storage',
      /not active/,
    );
    await stack.api.post(`/api/services/${service}/activate`);
    expect((await stack.api.get('/api/minio/objects')).body).to.include({ bucket: 'files' });
    await stack.processes.get('actor-host')?.end();
    expectFailure(await stack.api.get('/api/minio/objects'), 'no_actor_host');
    await stack.start('actor-host');
    await eventually(async () => {
      expect((await stack.api.get('/api/minio/objects')).body).to.include({ bucket: 'files' });
    });
  });

  /** Sends a form, without the content of its file. */
  function startUpload(key: string, size: number): ClientRequest {
    const [head, tail] = frame(key);
    const outgoing = request(`${stack.apiUrl}/api/minio/objects`, {
      method: 'POST',
      headers: {
        ...multipart([]).headers,
        'content-length': head.length + size + tail.length,
      },
    });
    outgoing.write(head);
    return outgoing;
  }

  async function upload(key: string, size: number, hash: Hash): Promise<IncomingMessage> {
    const outgoing = startUpload(key, size);
    const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
    const [, tail] = frame(key);
    await pipeline(async function* () {
      const block = randomBytes(MIB);
      for (let left = size; left > 0; left -= block.length) {
        // No two blocks are the same, so that none can be mistaken for another.
        block.writeDoubleBE(left);
        const piece = Buffer.from(block);
        hash.update(piece);
        yield piece;
      }
      yield tail;
    }, outgoing);
    const [answer] = await answered;
    return answer;
  }

  async function download(key: string): Promise<IncomingMessage> {
    const outgoing = request(`${stack.apiUrl}/api/minio/objects/${key}`, { agent: false });
    outgoing.end();
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    expect(answer.statusCode).to.equal(200);
    return answer;
  }

  async function uploadsOnDisk(): Promise<string[]> {
    const entries = await readdir(join(stack.dataDir, 'uploads'), { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  }

  /** The most a process has ever had in memory. */
  async function peakMemoryMb(name: ProcessName): Promise<number> {
    const status = await readFile(`/proc/${stack.processes.get(name)?.pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) / 1024;
  }
});

/** What of a form stands before and after the content of its file. */
function frame(key: string): [head: Buffer, tail: Buffer] {
  const mark = 'the content';
  const { body } = multipart([
    { name: 'key', content: key },
    { name: 'file', filename: 'any.bin', content: mark },
  ]);
  const at = body.indexOf(mark);
  return [body.subarray(0, at), body.subarray(at + mark.length)];
}
