/** The ZIP of an export. */
import { Zip, ZipPassThrough } from 'fflate';
import { LongText, piecesOfText } from '../../util/json-text.js';
import { Pauses } from '../../util/pauses.js';
import type { ExportedFile } from './export.js';

/** The time of a file is no part of what an export says. */
const NO_TIME = new Date('1980-01-01T00:00:00');

/** Characters or bytes of a file that are added at once: their checksum is computed. */
const PART = 512 * 1024;

/** Makes a ZIP in parts, with pauses. Not compressed, which would block the event loop. */
export async function* zipOf(
  files: Readonly<Record<string, ExportedFile>>,
): AsyncGenerator<Uint8Array, void, void> {
  const pauses = new Pauses();
  let ready: Uint8Array[] = [];
  const zip = new Zip((error, part) => {
    if (error) throw error;
    ready.push(part);
  });
  for (const [path, content] of Object.entries(files)) {
    const file = new ZipPassThrough(path);
    file.mtime = NO_TIME;
    zip.add(file);
    for (const piece of piecesOf(content)) {
      file.push(piece);
      yield* ready;
      ready = [];
      await pauses.here();
    }
    file.push(new Uint8Array(), true);
  }
  zip.end();
  yield* ready;
}

function* piecesOf(content: ExportedFile): Generator<Uint8Array> {
  if (content instanceof LongText) for (const text of content.pieces) yield* piecesOf(text);
  else if (typeof content === 'string')
    for (const piece of piecesOfText(content, PART)) yield Buffer.from(piece);
  else for (let at = 0; at < content.length; at += PART) yield content.subarray(at, at + PART);
}
