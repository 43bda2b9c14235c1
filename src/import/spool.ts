/**
 * Writes the body of a request to a spool file. Only a complete body occupies one of the few reader processes: a slow
 * client blocks no other, and uses no memory.
 */
import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AppError, toError } from '../errors.js';
import { isErrno } from '../util/errno.js';
import { counting, type SpoolPlace } from '../util/spool-room.js';
import { uploadsFolder } from '../util/uploads.js';

export interface SpooledBody {
  readonly file: string;
  remove(): Promise<void>;
}

/**
 * Spools the whole body; removes the file on failure.
 * @param place that it has on the disk
 * @throws AppError body_too_large, or invalid_input when the connection closes before the end of the body; and what the
 * place throws
 */
export async function spool(
  body: Readable,
  dataDir: string,
  limitBytes: number,
  place: SpoolPlace,
): Promise<SpooledBody> {
  const file = join(await uploadsFolder(dataDir), `${randomUUID()}.json`);
  const remove = () => rm(file, { force: true });
  try {
    // A write stream that opens the file itself may do so even after it was destroyed, and so after the removal.
    const opened = await open(file, 'wx');
    await pipeline(body, limited(limitBytes, place), opened.createWriteStream());
    return { file, remove };
  } catch (thrown) {
    await remove();
    throw bodyError(thrown);
  }
}

/** Fails after this many bytes, or when there is no room. */
function limited(limitBytes: number, place: SpoolPlace): Transform {
  let count = 0;
  return counting((bytes) => {
    count += bytes;
    if (count > limitBytes)
      throw new AppError('body_too_large', `The body is larger than ${limitBytes} bytes`);
    place.take(bytes);
  });
}

function bodyError(thrown: unknown): Error {
  if (!isErrno(thrown, 'ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET')) return toError(thrown);
  return new AppError(
    'invalid_input',
    'body: the connection was closed before the end of the body',
    {},
    { cause: thrown },
  );
}
