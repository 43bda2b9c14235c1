/**
 * Takes the body of a request to disk as it comes. Only a body that is there whole gets one of the few processes that read:
 * a client that sends slowly, or never, holds up nobody, and costs no memory.
 */
import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AppError, toError } from '../errors.js';
import { uploadsFolder } from '../uploads.js';

/** A body on disk. */
export interface SpooledBody {
  readonly file: string;
  remove(): Promise<void>;
}

/**
 * Takes in the whole body. When that fails, no file is left.
 * @throws AppError body_too_large, or invalid_input when the body breaks off
 */
export async function spool(body: Readable, dataDir: string, limitBytes: number): Promise<SpooledBody> {
  const file = join(await uploadsFolder(dataDir), `${randomUUID()}.json`);
  const remove = () => rm(file, { force: true });
  try {
    // Opened first: a stream that opens the file itself may still do so after it was destroyed, and removed.
    const opened = await open(file, 'wx');
    await pipeline(body, counting(limitBytes), opened.createWriteStream());
    return { file, remove };
  } catch (thrown) {
    await remove();
    throw bodyError(thrown);
  }
}

/** Lets through so many bytes. */
function counting(limitBytes: number): Transform {
  let count = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      count += chunk.length;
      if (count <= limitBytes) done(null, chunk);
      else done(new AppError('body_too_large', `The body is larger than ${limitBytes} bytes`));
    },
  });
}

function bodyError(thrown: unknown): Error {
  const error = toError(thrown);
  const code = 'code' in error ? error.code : undefined;
  const isBrokenOff = code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'ECONNRESET';
  if (!isBrokenOff) return error;
  return new AppError('invalid_input', 'body: broke off before its end', {}, { cause: error });
}
