import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { expect } from 'chai';
import { loadConfig } from '../../src/config.js';
import { ImportReader } from '../../src/import/reader.js';
import { isAlive } from '../../src/process-liveness.js';
import { eventually } from '../support/eventually.js';
import { type TempDir, tempDir } from '../support/temp.js';
import { documentText, documentWith, GITHUB, RESPONSES, refuses } from './documents/documents.js';

/** Takes minutes to read: the parser compares each of its problems with all others. */
const ENDLESS = documentWith({
  components: { schemas: Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`S${at}`, 5])) },
});

const bodyOf = (value: unknown) => Readable.from([Buffer.from(JSON.stringify(value))]);

const read = (reader: ImportReader, body: Readable) => reader.readRequest(body, async (request) => request);

describe('import reader', () => {
  let folder: TempDir;
  const readers: ImportReader[] = [];

  const startReader = (settings: Record<string, string> = {}): ImportReader => {
    const reader = new ImportReader(loadConfig({ DATA_DIR: folder.path, ...settings }));
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

  it('returns what the document describes, and the other members', async () => {
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

  it('returns large documents whole, in order', async () => {
    const spec = await readFile(GITHUB, 'utf8');
    const { api } = await read(startReader(), bodyOf({ spec }));
    const { paths } = JSON.parse(spec) as { paths: Record<string, Record<string, { operationId: string }>> };
    const names = Object.values(paths).flatMap((item) =>
      Object.values(item).map(({ operationId }) => operationId),
    );
    expect(api.endpoints.map(({ name }) => name)).to.deep.equal(
      names.filter((name) => name !== 'repos/compare-commits'),
    );
    expect(new Set(api.endpoints.map(({ generatedCode }) => generatedCode)))
      .to.have.property('size')
      .above(1_000);
  });

  it('serves many requests at once, each its own', async function () {
    this.timeout(180_000);
    const reader = startReader();
    const titles = Array.from({ length: 30 }, (_, at) => `API ${at}`);
    const results = await Promise.all(
      titles.map((title) =>
        read(reader, bodyOf({ spec: documentWith({ info: { title, version: '1' } }), title })),
      ),
    );
    expect(results.map(({ api }) => api.title)).to.deep.equal(titles);
    expect(results.map(({ fields }) => fields['title'])).to.deep.equal(titles);
  });

  it('says what is wrong with a body', async () => {
    const reader = startReader();
    const readText = (text: string | Buffer) => read(reader, Readable.from([Buffer.from(text)]));
    await refuses(read(reader, Readable.from([])), /body: is required/, 'invalid_input');
    await refuses(readText('{"spec": '), /not valid JSON/, 'invalid_json');
    await refuses(readText(Buffer.from([0x22, 0xff, 0x22])), /not valid JSON/, 'invalid_json');
    await refuses(readText('[]'), /body: must be a JSON object/, 'invalid_input');
    await refuses(readText('{}'), /body\.spec: is required/, 'invalid_input');
    await refuses(
      readText('{"spec": {"openapi": "3.0.0"}}'),
      /body\.spec: must be a string/,
      'invalid_input',
    );
    await refuses(
      readText(JSON.stringify({ spec: '', x: 'y'.repeat(70_000) })),
      /beside "spec"/,
      'invalid_input',
    );
    await refuses(readText('{"spec": "swagger: 2.0"}'), /^body\.spec: The document is Swagger 2\.0/);
  });

  it('refuses documents over the limit, also while they come', async () => {
    const reader = startReader({ SPEC_LIMIT_BYTES: '10000' });
    const spec = documentWith({ info: { title: 'x', version: '1', description: 'y'.repeat(10_000) } });
    await refuses(read(reader, bodyOf({ spec })), /SPEC_LIMIT_BYTES/, 'body_too_large');
    // It has no end: it is refused before it is whole.
    const endless = new PassThrough();
    const pour = () => {
      while (endless.writable && endless.write(Buffer.alloc(16_384, 32)));
    };
    endless.on('drain', pour).on('error', () => undefined);
    pour();
    await refuses(read(reader, endless), /larger than \d+ bytes/, 'body_too_large');
    endless.destroy();
  });

  it('takes a body that breaks off for an error', async () => {
    const reader = startReader();
    // At all moments: while its file is being opened, too.
    const readings = Array.from({ length: 100 }, async (_, turns) => {
      const body = new PassThrough();
      body.write('{"spec": "');
      const reading = read(reader, body);
      const refused = refuses(reading, /broke off/, 'invalid_input');
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      body.destroy();
      await refused;
    });
    await Promise.all(readings);
  });

  it('is not held up by bodies that do not come', async () => {
    const reader = startReader();
    const silent = Array.from({ length: 5 }, () => new PassThrough());
    const waiting = silent.map((body) => refuses(read(reader, body), /broke off/, 'invalid_input'));
    const { api } = await read(reader, bodyOf({ spec: documentWith({}) }));
    expect(api.title).to.equal('Test');
    for (const body of silent) body.destroy();
    await Promise.all(waiting);
  });

  it('ends reading that takes too long', async () => {
    const reader = startReader({ IMPORT_READ_TIMEOUT_MS: '1000' });
    // More than are read at a time: the last gets the place of one that was ended.
    const readings = Array.from({ length: 3 }, () => read(reader, bodyOf({ spec: ENDLESS })));
    await Promise.all(
      readings.map((reading) => refuses(reading, /takes longer than 1000 ms \(IMPORT_READ_TIMEOUT_MS\)/)),
    );
  });

  it('ends reading that needs too much memory', async () => {
    const reader = startReader({ IMPORT_READ_MEMORY_MB: '64' });
    const spec = await readFile(GITHUB, 'utf8');
    await refuses(read(reader, bodyOf({ spec })), /needs more memory than 64 MiB \(IMPORT_READ_MEMORY_MB\)/);
    await read(reader, bodyOf({ spec: documentWith({}) }));
  });

  it('says when its process was killed, and goes on', async () => {
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

  it('does not outlive who has started it', async () => {
    const body = join(folder.path, 'endless.body');
    await writeFile(body, JSON.stringify({ spec: ENDLESS }));
    const script = `
      import { createReadStream } from 'node:fs';
      import { loadConfig } from ${JSON.stringify(new URL('../../src/config.js', import.meta.url).href)};
      import { ImportReader } from ${JSON.stringify(new URL('../../src/import/reader.js', import.meta.url).href)};
      const reader = new ImportReader(loadConfig({ DATA_DIR: ${JSON.stringify(join(folder.path, 'other'))} }));
      await reader.readRequest(createReadStream(${JSON.stringify(body)}), async () => undefined);
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

  it('keeps a process for the next import, unless it failed or grew large', async () => {
    const reader = startReader();
    const small = () => read(reader, bodyOf({ spec: documentWith({}) }));
    await small();
    const [first] = await readerProcesses();
    await small();
    expect(await readerProcesses()).to.deep.equal([first]);
    await refuses(read(reader, bodyOf({ spec: 'a: 1' })), /body\.spec/);
    expect(await readerProcesses()).to.deep.equal([]);
    await read(reader, bodyOf({ spec: await readFile(GITHUB, 'utf8') }));
    expect(await readerProcesses()).to.deep.equal([]);
  });

  it('does without the process it has kept when that is gone', async () => {
    const reader = startReader();
    await read(reader, bodyOf({ spec: documentWith({}) }));
    const [pid = 0] = await readerProcesses();
    process.kill(pid, 'SIGKILL');
    await eventually(() => expect(isAlive(pid)).to.equal(false));
    await read(reader, bodyOf({ spec: documentWith({}) }));
  });

  it('ends what is under way, and what waits, when it is closed', async () => {
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

  it('holds few of what it has read, until each is done with', async () => {
    const reader = startReader();
    let held = 0;
    let most = 0;
    let release: () => void = () => undefined;
    const done = new Promise<void>((resolve) => {
      release = resolve;
    });
    const use = async () => {
      most = Math.max(most, ++held);
      await done;
      held--;
    };
    const uses = Array.from({ length: 5 }, () => reader.readRequest(bodyOf({ spec: documentWith({}) }), use));
    uses.push(reader.readRequest(bodyOf({ spec: 'a: 1' }), use).catch(() => undefined));
    await eventually(() => expect(held).to.equal(3));
    await eventually(async () => expect(await spooled()).to.have.length.within(5, 6));
    release();
    await Promise.all(uses);
    expect(most).to.equal(3);
  });

  it('reads bundles', async () => {
    const file = join(folder.path, 'bundle.zip');
    await writeFile(file, 'no archive');
    await refuses(
      startReader().readBundle(file, async (api) => api),
      /ZIP/,
      'invalid_bundle',
    );
    expect(existsSync(file)).to.equal(true);
  });

  it('refuses documents whose handlers would be too large in all', async () => {
    const description = 'x'.repeat(60_000);
    const paths = Object.fromEntries(
      Array.from({ length: 1_200 }, (_, at) => [`/p${at}`, { get: { description, responses: RESPONSES } }]),
    );
    const reader = startReader({ SPEC_LIMIT_BYTES: '100000000' });
    await refuses(read(reader, bodyOf({ spec: documentWith({ paths }) })), /characters in all/);
  });
});

/** The ids of the processes that a process, this one by default, has started to read imports. */
async function readerProcesses(starter = process.pid): Promise<number[]> {
  const found: number[] = [];
  for (const name of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    const isReader = command.startsWith(process.execPath) && command.includes('reader-process');
    if (isReader && Number(parent) === starter && state !== 'Z') found.push(Number(name));
  }
  return found;
}
