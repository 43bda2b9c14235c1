import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { expect } from 'chai';
import { loadConfig } from '../../../src/config.js';
import { ImportReader } from '../../../src/import/reader.js';
import { isAlive } from '../../../src/util/process-liveness.js';
import { documentText, documentWith, expectRejected, RESPONSES } from '../../import/documents/documents.js';
import { eventually } from '../../support/eventually.js';
import { GITHUB_DOCUMENT } from '../../support/server-cache.js';
import { type TempDir, tempDir } from '../../support/temp.js';

/** Takes many seconds to parse. */
const ENDLESS = `openapi: 3.0.0\nx-data:\n${'- [a, b]\n'.repeat(200_000)}`;

const bodyOf = (value: unknown) => Readable.from([Buffer.from(JSON.stringify(value))]);

const OWNER = 'somebody';
const read = (reader: ImportReader, body: Readable, owner = OWNER) =>
  reader.readRequest(owner, body, async (request) => request);

describe('import reader', () => {
  let folder: TempDir;
  const readers: ImportReader[] = [];

  const startReader = (settings: Record<string, string> = {}): ImportReader => {
    // Documents are read at low priority, and other tests use the processors at the same time.
    const patient = { IMPORT_READ_TIMEOUT_MS: '600000', ...settings };
    const reader = new ImportReader(loadConfig({ DATA_DIR: folder.path, ...patient }));
    readers.push(reader);
    return reader;
  };
  const spooled = async () => {
    const files = await readdir(join(folder.path, 'uploads'), { recursive: true }).catch(() => []);
    return files.filter((name) => name.endsWith('.json'));
  };

  before(async () => {
    folder = await tempDir('reader');
  });
  afterEach(async () => {
    await Promise.all(readers.splice(0).map((reader) => reader.close()));
    expect(await spooled()).to.deep.equal([]);
    await eventually(async () => expect(await readerProcesses()).to.deep.equal([]));
  });
  after(() => folder?.remove());

  it('returns the API that the document describes, and the other members of the body', async () => {
    const body = { spec: documentText('petstore-3.0.yaml'), domain: 'a.example', create_collection: true };
    const { fields, api } = await read(startReader(), bodyOf(body));
    expect(fields).to.deep.equal({ domain: 'a.example', create_collection: true });
    expect(api).to.include({ title: 'Swagger Petstore', basePath: '/v1', dependencies: null });
    expect(api.endpoints.map(({ name }) => name)).to.deep.equal(['listPets', 'createPets', 'showPetById']);
    for (const { generatedCode, handler } of api.endpoints) {
      expect(generatedCode).to.include('handler_loop');
      expect(handler).to.equal(null);
    }
  });

  it('returns all operations of a large document, in order', async () => {
    const spec = await readFile(GITHUB_DOCUMENT, 'utf8');
    const { api } = await read(startReader(), bodyOf({ spec }));
    const { paths } = JSON.parse(spec) as { paths: Record<string, Record<string, { operationId: string }>> };
    const names = Object.values(paths).flatMap((item) =>
      Object.values(item).map(({ operationId }) => operationId),
    );
    expect(api.endpoints.map(({ name }) => name)).to.deep.equal(names);
    expect(new Set(api.endpoints.map(({ generatedCode }) => generatedCode)))
      .to.have.property('size')
      .above(1_000);
  });

  it('returns its own result to each of many concurrent imports', async function () {
    this.timeout(180_000);
    const reader = startReader();
    const titles = Array.from({ length: 10 }, (_, at) => `API ${at}`);
    const results = await Promise.all(
      titles.map((title) =>
        read(reader, bodyOf({ spec: documentWith({ info: { title, version: '1' } }), title })),
      ),
    );
    expect(results.map(({ api }) => api.title)).to.deep.equal(titles);
    expect(results.map(({ fields }) => fields['title'])).to.deep.equal(titles);
  });

  it('reports errors in the body of an import', async () => {
    const reader = startReader();
    const readText = (text: string | Buffer) => read(reader, Readable.from([Buffer.from(text)]));
    await expectRejected(read(reader, Readable.from([])), /body: is required/, 'invalid_input');
    await expectRejected(readText('{"spec": '), /not valid JSON/, 'invalid_json');
    await expectRejected(readText(Buffer.from([0x22, 0xff, 0x22])), /not valid JSON/, 'invalid_json');
    await expectRejected(readText('[]'), /body: must be a JSON object/, 'invalid_input');
    await expectRejected(readText('{}'), /body\.spec: is required/, 'invalid_input');
    await expectRejected(
      readText('{"spec": {"openapi": "3.0.0"}}'),
      /body\.spec: must be a string/,
      'invalid_input',
    );
    await expectRejected(
      readText(JSON.stringify({ spec: '', x: 'y'.repeat(70_000) })),
      /beside "spec"/,
      'invalid_input',
    );
    await expectRejected(readText('{"spec": "swagger: 1.2"}'), /^body\.spec: \/swagger: /);
  });

  it('rejects documents over the limit, even before the end of the body', async () => {
    const reader = startReader({ SPEC_LIMIT_BYTES: '10000' });
    const spec = documentWith({ info: { title: 'x', version: '1', description: 'y'.repeat(10_000) } });
    await expectRejected(read(reader, bodyOf({ spec })), /SPEC_LIMIT_BYTES/, 'body_too_large');
    // This body never ends.
    const endless = new PassThrough();
    const pour = () => {
      while (endless.writable && endless.write(Buffer.alloc(16_384, 32)));
    };
    endless.on('drain', pour).on('error', () => undefined);
    pour();
    await expectRejected(read(reader, endless), /larger than \d+ bytes/, 'body_too_large');
    endless.destroy();
  });

  it('rejects a body whose connection is closed', async () => {
    const reader = startReader();
    // At different moments, also while the spool file is being opened.
    const readings = Array.from({ length: 100 }, async (_, turns) => {
      const body = new PassThrough();
      body.write('{"spec": "');
      const reading = read(reader, body, `${turns}`);
      const refused = expectRejected(reading, /connection was closed/, 'invalid_input');
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      body.destroy();
      await refused;
    });
    await Promise.all(readings);
  });

  it('reads an import while bodies of others never arrive', async () => {
    const reader = startReader();
    const silent = Array.from({ length: 5 }, () => new PassThrough());
    const waiting = silent.map((body) =>
      expectRejected(read(reader, body), /connection was closed/, 'invalid_input'),
    );
    const { api } = await read(reader, bodyOf({ spec: documentWith({}) }));
    expect(api.title).to.equal('Test');
    for (const body of silent) body.destroy();
    await Promise.all(waiting);
  });

  it('kills a reader process that exceeds the timeout', async () => {
    const reader = startReader({ IMPORT_READ_TIMEOUT_MS: '1000' });
    // More than are parsed concurrently: the last one starts after another was killed.
    const readings = Array.from({ length: 3 }, () => read(reader, bodyOf({ spec: ENDLESS })));
    await Promise.all(
      readings.map((reading) =>
        expectRejected(reading, /takes longer than 1000 ms, .*IMPORT_READ_TIMEOUT_MS/, 'import_timeout'),
      ),
    );
  });

  it('rejects documents that exceed the heap limit', async () => {
    const reader = startReader({ IMPORT_READ_MEMORY_MB: '64' });
    await expectRejected(
      read(reader, bodyOf({ spec: ENDLESS })),
      /needs more than 64 MiB of memory, .*IMPORT_READ_MEMORY_MB/,
      'import_memory',
    );
    await read(reader, bodyOf({ spec: documentWith({}) }));
  });

  it('reports that a reader process was killed, and recovers', async () => {
    const reader = startReader();
    const reading = read(reader, bodyOf({ spec: ENDLESS })).catch((error: unknown) => error);
    const [pid] = await eventually(async () => {
      const pids = await readerProcesses();
      expect(pids).to.have.lengthOf(1);
      return pids;
    });
    process.kill(pid ?? 0, 'SIGKILL');
    expect(await reading)
      .to.be.instanceOf(Error)
      .with.property('message')
      .that.matches(/ended \(SIGKILL\)/);
    await read(reader, bodyOf({ spec: documentWith({}) }));
  });

  it('ends reader processes with their parent', async () => {
    const body = join(folder.path, 'endless.body');
    await writeFile(body, JSON.stringify({ spec: ENDLESS }));
    const script = `
      import { createReadStream } from 'node:fs';
      import { loadConfig } from ${JSON.stringify(new URL('../../../src/config.js', import.meta.url).href)};
      import { ImportReader } from ${JSON.stringify(new URL('../../../src/import/reader.js', import.meta.url).href)};
      const reader = new ImportReader(loadConfig({ DATA_DIR: ${JSON.stringify(join(folder.path, 'other'))} }));
      await reader.readRequest('somebody', createReadStream(${JSON.stringify(body)}), async () => undefined);
    `;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' });
    const [pid = 0] = await eventually(async () => {
      const pids = await readerProcesses(parent.pid);
      expect(pids).to.have.lengthOf(1);
      return pids;
    });
    const exit = once(parent, 'exit');
    parent.kill('SIGKILL');
    await exit;
    await eventually(() => expect(isAlive(pid)).to.equal(false));
  });

  it('reuses a reader process unless it failed or uses much memory', async () => {
    const reader = startReader();
    const small = () => read(reader, bodyOf({ spec: documentWith({}) }));
    await small();
    const [first] = await readerProcesses();
    await small();
    expect(await readerProcesses()).to.deep.equal([first]);
    await expectRejected(read(reader, bodyOf({ spec: 'a: 1' })), /body\.spec/);
    expect(await readerProcesses()).to.deep.equal([]);
    await read(reader, bodyOf({ spec: documentWith({ 'x-data': Array(3_000_000).fill({}) }) }));
    expect(await readerProcesses()).to.deep.equal([]);
  });

  it('replaces an idle reader process that was killed', async () => {
    const reader = startReader();
    await read(reader, bodyOf({ spec: documentWith({}) }));
    const [pid = 0] = await readerProcesses();
    process.kill(pid, 'SIGKILL');
    await eventually(() => expect(isAlive(pid)).to.equal(false));
    await read(reader, bodyOf({ spec: documentWith({}) }));
  });

  it('rejects running and queued imports when the reader is closed', async () => {
    const reader = startReader();
    const readings = Array.from({ length: 4 }, () =>
      read(reader, bodyOf({ spec: ENDLESS })).catch((error: unknown) => error),
    );
    await eventually(async () => expect(await readerProcesses()).to.have.lengthOf(2));
    await reader.close();
    for (const error of await Promise.all(readings)) {
      expect(error)
        .to.be.instanceOf(Error)
        .with.property('message')
        .that.matches(/stopping/);
    }
  });

  it('holds at most three results of imports until they are stored', async () => {
    const reader = startReader();
    let held = 0;
    let maxHeld = 0;
    let release: () => void = () => undefined;
    const done = new Promise<void>((resolve) => {
      release = resolve;
    });
    const store = async () => {
      maxHeld = Math.max(maxHeld, ++held);
      await done;
      held--;
    };
    const imports = Array.from({ length: 5 }, () =>
      reader.readRequest(OWNER, bodyOf({ spec: documentWith({}) }), store),
    );
    imports.push(reader.readRequest(OWNER, bodyOf({ spec: 'a: 1' }), store).catch(() => undefined));
    await eventually(() => expect(held).to.equal(3));
    await eventually(async () => expect(await spooled()).to.have.length.within(5, 6));
    release();
    await Promise.all(imports);
    expect(maxHeld).to.equal(3);
  });

  it('reads the import of an owner within seconds while endless ones of another take all readers', async () => {
    const reader = startReader();
    const endless = Array.from({ length: 5 }, () =>
      read(reader, bodyOf({ spec: ENDLESS }), 'greedy').catch((error: unknown) => error),
    );
    await eventually(async () => expect(await readerProcesses()).to.have.lengthOf(2));
    // However fast this machine is, they do not come to an end.
    for (const pid of await readerProcesses()) process.kill(pid, 'SIGSTOP');
    const { api } = await read(reader, bodyOf({ spec: documentWith({}) }), 'modest');
    expect(api.title).to.equal('Test');
    await reader.close();
    for (const error of await Promise.all(endless)) expect(String(error)).to.include('stopping');
  });

  it('reads the import of an owner while results of another are not stored', async () => {
    const reader = startReader();
    let release: () => void = () => undefined;
    const done = new Promise<void>((resolve) => {
      release = resolve;
    });
    let held = 0;
    const stored = Array.from({ length: 4 }, () =>
      reader.readRequest('greedy', bodyOf({ spec: documentWith({}) }), () => {
        held++;
        return done;
      }),
    );
    await eventually(() => expect(held).to.equal(3));
    await read(reader, bodyOf({ spec: documentWith({}) }), 'modest');
    expect(held).to.equal(3);
    release();
    await Promise.all(stored);
  });

  it('refuses an owner who has as many imports waiting as one may have, and nobody else', async () => {
    const reader = startReader({ IMPORTS_QUEUED_LIMIT: '2' });
    const silent = [new PassThrough(), new PassThrough()];
    const waiting = silent.map((body) =>
      expectRejected(read(reader, body, 'greedy'), /connection was closed/, 'invalid_input'),
    );
    const more = () => read(reader, bodyOf({ spec: documentWith({}) }), 'greedy');
    await expectRejected(more(), /2 imports and plans.*IMPORTS_QUEUED_LIMIT/, 'too_many_imports');
    await read(reader, bodyOf({ spec: documentWith({}) }), 'modest');
    for (const body of silent) body.destroy();
    await Promise.all(waiting);
    await more();
  });

  it('keeps no more of the bodies of an owner on the disk than it may, and leaves room to others', async () => {
    const reader = startReader({ IMPORTS_SPOOLED_LIMIT_BYTES: '100000' });
    const first = new PassThrough();
    const waiting = expectRejected(read(reader, first, 'greedy'), /connection was closed/, 'invalid_input');
    first.write(Buffer.alloc(45_000, 32));
    await eventually(() => expect(reader.room.bytes).to.equal(45_000));
    const large = () => bodyOf({ spec: documentWith({}), x: 'y'.repeat(10_000) });
    await expectRejected(
      read(reader, large(), 'greedy'),
      /50000 bytes.*IMPORTS_SPOOLED_LIMIT_BYTES/,
      'too_many_imports',
    );
    expect(reader.room.bytes).to.equal(45_000);
    await read(reader, large(), 'modest');
    first.destroy();
    await waiting;
    expect(reader.room.bytes).to.equal(0);
    await read(reader, large(), 'greedy');
  });

  it('rejects a bundle that is no archive, and keeps its file', async () => {
    const file = join(folder.path, 'bundle.zip');
    await writeFile(file, 'no archive');
    await expectRejected(
      startReader().readBundle(OWNER, file, async (api) => api),
      /ZIP/,
      'invalid_bundle',
    );
    expect(existsSync(file)).to.equal(true);
  });

  it('rejects documents whose handlers are too large in total', async () => {
    const description = 'x'.repeat(60_000);
    const paths = Object.fromEntries(
      Array.from({ length: 1_200 }, (_, at) => [`/p${at}`, { get: { description, responses: RESPONSES } }]),
    );
    const reader = startReader({ SPEC_LIMIT_BYTES: '100000000' });
    await expectRejected(read(reader, bodyOf({ spec: documentWith({ paths }) })), /characters in total/);
  });
});

/** The process ids of a process's reader children; of this process by default. */
async function readerProcesses(parentPid = process.pid): Promise<number[]> {
  const found: number[] = [];
  for (const name of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    const isReader = command.startsWith(process.execPath) && command.includes('reader-process');
    if (isReader && Number(parent) === parentPid && state !== 'Z') found.push(Number(name));
  }
  return found;
}
