/** Uploads under way: they go on when one looks at another page. */
import { signal } from '@preact/signals';
import type { ApiError } from '../api/client.js';
import { invalidate, toApiError } from '../api/query.js';
import { upload } from '../api/upload.js';

export interface Upload {
  readonly id: number;
  /** The id of the storage that it goes to. */
  readonly service: string;
  readonly key: string;
  readonly size: number;
  /** How much of it is sent, from 0 to 1. */
  readonly part: number;
  readonly state: 'waiting' | 'sending' | 'done' | 'failed';
  readonly error?: ApiError | undefined;
}

interface WaitingUpload {
  readonly id: number;
  readonly file: File;
  readonly service: string;
  readonly abort: AbortController;
}

export const uploads = signal<readonly Upload[]>([]);
const MOST_AT_ONCE = 2;
const waiting: WaitingUpload[] = [];
/** All uploads that are not done, by the ids by which they are tried again. */
const known = new Map<number, WaitingUpload>();
let running = 0;
let lastId = 0;

/** @param prefix put before the names of the files */
export function addUploads(service: string, prefix: string, files: readonly File[]): void {
  for (const file of files) {
    const id = ++lastId;
    const one = { id, file, service, abort: new AbortController() };
    waiting.push(one);
    known.set(id, one);
    uploads.value = [
      ...uploads.value,
      { id, service, key: prefix + file.name, size: file.size, part: 0, state: 'waiting' },
    ];
  }
  next();
}

export function tryAgain(id: number): void {
  const one = known.get(id);
  if (!one) return;
  const again = { ...one, abort: new AbortController() };
  known.set(id, again);
  waiting.push(again);
  change(id, { state: 'waiting', part: 0, error: undefined });
  next();
}

export function cancelUpload(id: number): void {
  known.get(id)?.abort.abort();
  const at = waiting.findIndex((one) => one.id === id);
  if (at >= 0) waiting.splice(at, 1);
  known.delete(id);
  uploads.value = uploads.value.filter((one) => one.id !== id);
}

/** Forgets those to a storage that have ended. */
export function clearUploads(service: string): void {
  uploads.value = uploads.value.filter((one) => one.service !== service || !hasEnded(one));
}

export const hasEnded = ({ state }: Upload) => state === 'done' || state === 'failed';

function next(): void {
  while (running < MOST_AT_ONCE) {
    const one = waiting.shift();
    if (!one) return;
    running++;
    void send(one).finally(() => {
      running--;
      next();
    });
  }
}

async function send({ id, file, service, abort }: WaitingUpload): Promise<void> {
  const key = uploads.value.find((one) => one.id === id)?.key;
  if (key === undefined) return;
  const form = new FormData();
  // Fields come before the file, so that the API can refuse them before it has read that.
  form.set('key', key);
  form.set('file', file);
  change(id, { state: 'sending' });
  const query = { service };
  try {
    await upload({
      ...{ route: 'POST /api/minio/objects', query, body: form, signal: abort.signal },
      onProgress: (part) => change(id, { part }),
    });
    change(id, { state: 'done', part: 1 });
    known.delete(id);
    invalidate('/api/minio/objects');
  } catch (thrown) {
    change(id, { state: 'failed', error: toApiError(thrown) });
  }
}

function change(id: number, part: Partial<Upload>): void {
  uploads.value = uploads.value.map((one) => (one.id === id ? { ...one, ...part } : one));
}

addEventListener('beforeunload', (event) => {
  if (running > 0) event.preventDefault();
});
