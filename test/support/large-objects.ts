/** A file on its way through a handler into an object storage, and back: what it takes of memory. */
import { createHash, type Hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { expect } from 'chai';
import { startS3Backend } from './backends/s3.js';
import { deployExample } from './examples.js';
import { frontOf, servicesOf } from './process-state.js';
import { must, type ProcessName, type Stack } from './processes.js';
import { activeService } from './test-services.js';

const MEGABYTE = 1024 * 1024;
/** So much may each process grow. */
const MOST_BYTES = 50 * MEGABYTE;

/** Deploys the example for large files with a storage of its own. @returns what removes that */
export async function deployLargeFiles(stack: Stack): Promise<() => Promise<void>> {
  const backend = await startS3Backend();
  try {
    await deployExample(stack.api, 'upload-stream', () =>
      activeService(stack.api, 'objstore', backend.config),
    );
  } catch (thrown) {
    await backend.remove();
    throw thrown;
  }
  return () => backend.remove();
}

/**
 * Sends so many bytes into the storage, and reads them back: they have to be the same, and front, handlers and process
 * of the service must not have grown by more than 50 MB at any time.
 */
export async function expectSentAndRead(stack: Stack, bytes: number): Promise<void> {
  const url = `${stack.gatewayUrl}/large-files/large`;
  // What is loaded with the first call of each kind is no growth.
  await put(url, MEGABYTE);
  await get(url);
  const processes = await processesOf(stack);
  const before = [...processes].map(([name, pid]) => ({ name, pid, bytes: beginMeasuring(pid) }));
  const sent = await put(url, bytes);
  const read = await get(url);
  expect(read).to.deep.equal({ hash: sent, bytes });
  for (const { name, pid, bytes: least } of before) {
    expect(memory(pid, 'VmHWM') - least, `growth of the ${name}`).to.be.below(MOST_BYTES);
  }
}

/** Front, handlers and services. */
async function processesOf(stack: Stack): Promise<Map<string, number>> {
  const pidOf = (name: ProcessName) => stack.processes.get(name)?.pid ?? 0;
  const processes = new Map([['front', frontOf(pidOf('gateway')) ?? 0]]);
  const endpoints = (await must(stack.api.get('/api/endpoints'))) as { name: string; pid: number }[];
  for (const { name, pid } of endpoints) processes.set(`handler ${name}`, pid);
  const services = servicesOf(pidOf('actor-host'));
  for (const [index, { pid }] of services.entries()) processes.set(`service process ${index}`, pid);
  expect(processes.size).to.equal(4);
  return processes;
}

async function put(url: string, bytes: number): Promise<string> {
  const hash = createHash('sha256');
  const outgoing = request(url, { method: 'PUT', headers: { 'content-length': bytes } });
  const answered = new Promise<IncomingMessage>((resolve, reject) =>
    outgoing.once('response', resolve).once('error', reject),
  );
  await pipeline(Readable.from(pieces(bytes, hash)), outgoing);
  const response = await answered;
  expect(response.statusCode).to.equal(201);
  response.resume();
  return hash.digest('hex');
}

/** Bytes that differ all along. */
function* pieces(bytes: number, hash: Hash): Generator<Buffer> {
  const piece = Buffer.alloc(256 * 1024);
  for (let sent = 0; sent < bytes; sent += piece.length) {
    for (let at = 0; at < piece.length; at += 4096) piece.writeDoubleBE(sent + at, at);
    hash.update(piece);
    yield Buffer.from(piece);
  }
}

async function get(url: string): Promise<{ hash: string; bytes: number }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    request(url).once('response', resolve).once('error', reject).end(),
  );
  expect(response.statusCode).to.equal(200);
  const hash = createHash('sha256');
  let bytes = 0;
  const counted = new Writable({
    write(piece: Buffer, _encoding, done) {
      hash.update(piece);
      bytes += piece.length;
      done();
    },
  });
  await pipeline(response, counted);
  return { hash: hash.digest('hex'), bytes };
}

/** Forgets the highest use of memory so far. @returns that of now, in bytes */
function beginMeasuring(pid: number): number {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
  return memory(pid, 'VmRSS');
}

function memory(pid: number, kind: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${kind}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024;
}
