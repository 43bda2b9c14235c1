/** The ZIP of an export. */
import { Zip, ZipPassThrough } from 'fflate';
import { Pauses } from '../../util/pauses.js';

/** The time of a file is no part of what an export says. */
const NO_TIME = new Date('1980-01-01T00:00:00');

/** In parts, with pauses. Not compressed, which would block the event loop. */
export async function* zipOf(
  files: Readonly<Record<string, string>>,
): AsyncGenerator<Uint8Array, void, void> {
  const pauses = new Pauses();
  let ready: Uint8Array[] = [];
  const zip = new Zip((error, part) => {
    if (error) throw error;
    ready.push(part);
  });
  const add = (path: string, text: string) => {
    const file = new ZipPassThrough(path);
    file.mtime = NO_TIME;
    zip.add(file);
    file.push(Buffer.from(text), true);
  };
  for (const [path, text] of Object.entries(files)) {
    add(path, text);
    yield* ready;
    ready = [];
    await pauses.here();
  }
  zip.end();
  yield* ready;
}
