/** Writes tar archives (POSIX ustar): the same files make the same bytes. */

const BLOCK = 512;
/** 1970 would be no time at all for some tools. */
const FIXED_TIME = 1;

/**
 * @param folder that all files are in
 * @param files contents by their paths in the folder
 * @throws Error for a path that the format has no room for
 */
export function tarOf(folder: string, files: ReadonlyMap<string, Uint8Array>): Buffer {
  const blocks: Uint8Array[] = [];
  for (const [path, content] of [...files].sort(([left], [right]) => (left < right ? -1 : 1))) {
    const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
    blocks.push(headerOf(folder, path, content.length), content, padding);
  }
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

function headerOf(folder: string, path: string, size: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  const put = (text: string, at: number, length: number) => {
    if (Buffer.byteLength(text) > length) throw new Error(`${folder}/${path}: too long for a tar archive`);
    header.write(text, at);
  };
  const octal = (value: number, length: number) => value.toString(8).padStart(length - 1, '0');
  put(path, 0, 100);
  put(octal(0o644, 8), 100, 8);
  put(octal(0, 8), 108, 8); // user
  put(octal(0, 8), 116, 8); // group
  put(octal(size, 12), 124, 12);
  put(octal(FIXED_TIME, 12), 136, 12);
  put(' '.repeat(8), 148, 8); // counts as spaces in its own sum
  put('0', 156, 1); // a plain file
  put('ustar\u000000', 257, 8);
  put(folder, 345, 155);
  const sum = header.reduce((total, byte) => total + byte, 0);
  put(`${octal(sum, 7)}\0 `, 148, 8);
  return header;
}
