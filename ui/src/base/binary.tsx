/** Bytes that are no text: what is said of them, and how they are had as a file. */
import { Button } from './controls.js';
import { saveFile } from './download.js';
import { count } from './text.js';

/** Bytes as JSON has them. */
export interface Bytes {
  readonly base64: string;
}

const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** More arguments of a call are too many. */
const PART_BYTES = 8_192;

/** The content of a file as JSON has it: its text if it is UTF-8 without NUL. */
export function contentOf(bytes: Uint8Array): string | Bytes {
  try {
    const text = DECODER.decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // No UTF-8: below.
  }
  let binary = '';
  for (let at = 0; at < bytes.length; at += PART_BYTES)
    binary += String.fromCharCode(...bytes.subarray(at, at + PART_BYTES));
  return { base64: btoa(binary) };
}

export function bytesOf({ base64 }: Bytes): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** What is said of bytes instead of showing them. */
export function binaryText({ base64 }: Bytes): string {
  return `binary, ${count(Math.floor((base64.replace(/=+$/, '').length * 3) / 4))} bytes`;
}

interface BinaryProps {
  /** Its last name is that of the file which the browser saves. */
  readonly path: string;
  readonly content: Bytes;
}

export function Binary({ path, content }: BinaryProps) {
  return (
    <div class="row-inline">
      <span>{binaryText(content)}</span>
      <Button
        isSmall
        label={`Download ${path}`}
        onClick={() => saveFile(path.slice(path.lastIndexOf('/') + 1), bytesOf(content))}
      >
        Download
      </Button>
    </div>
  );
}
