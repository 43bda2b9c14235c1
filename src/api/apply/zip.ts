/** The ZIP of an export. */
import { Zip, ZipPassThrough } from 'fflate';
import { Pauses } from '../../util/pauses.js';

/** The time of a file is no part of what an export says. */
const NO_TIME = new Date('1980-01-01T00:00:00');

/** Bytes of a file that are added at once: their checksum is computed. */
const PART = 512 * 1024;

/** Makes a ZIP in parts, with pauses. Not compressed, which would block the event loop. */
export async function* zipOf(
  files: Readonly<Record<string, string>>,
): AsyncGenerator<Uint8Array, void, void> {
  const pauses = new Pauses();
  let ready: Uint8Array[] = [];
  const zip = new Zip((error, part) => {
    if (error) throw error;
    ready.push(part);
  });
  for (const [path, text] of Object.entries(files)) {
    const file = new ZipPassThrough(path);
    file.mtime = NO_TIME;
    zip.add(file);
    const bytes = Buffer.from(text);
    for (let at = 0; at === 0 || at < bytes.length; at += PART) {
      file.push(bytes.subarray(at, at + PART), at + PART >= bytes.length);
      yield* ready;
      ready = [];
      await pauses.here();
    }
  }
  zip.end();
  yield* ready;
}
