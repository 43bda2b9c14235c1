/**
 * Messages of PostgreSQL's extended protocol, all that one statement takes in one buffer: the library writes each of
 * them by itself, and so many writes to a socket cost more than the rest of a call.
 */

/** Describe, of the portal without a name. */
const DESCRIBE = Buffer.from([0x44, 0, 0, 0, 6, 0x50, 0]);
/** Execute that portal, with all rows; Sync. */
const EXECUTE_SYNC = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0x53, 0, 0, 0, 4]);

/**
 * Bind, Describe if asked for, Execute and Sync.
 * @param name of the prepared statement, in ASCII
 * @param values texts; bytes go as they are
 */
export function executeMessages(
  name: string,
  values: readonly (string | Buffer | null)[],
  describe: boolean,
): Buffer {
  const hasBytes = values.some((value) => typeof value === 'object' && value !== null);
  const formats = hasBytes ? values.length : 0;
  const lengths = values.map(lengthOf);
  let length = 4 + 1 + name.length + 1 + 2 + 2 * formats + 2 + 2;
  for (const bytes of lengths) length += 4 + Math.max(bytes, 0);
  const tail = describe ? DESCRIBE.length + EXECUTE_SYNC.length : EXECUTE_SYNC.length;
  const buffer = Buffer.allocUnsafe(1 + length + tail);
  buffer[0] = 0x42;
  buffer.writeInt32BE(length, 1);
  buffer[5] = 0;
  let at = 6 + buffer.write(name, 6, 'latin1');
  buffer[at++] = 0;
  at = buffer.writeUInt16BE(formats, at);
  if (hasBytes) for (const value of values) at = buffer.writeInt16BE(Buffer.isBuffer(value) ? 1 : 0, at);
  at = buffer.writeUInt16BE(values.length, at);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    at = buffer.writeInt32BE(lengths[i] as number, at);
    if (typeof value === 'string') at += buffer.write(value, at);
    else if (value) at += value.copy(buffer, at);
  }
  // Results come as text.
  at = buffer.writeInt16BE(0, at);
  if (describe) at += DESCRIBE.copy(buffer, at);
  EXECUTE_SYNC.copy(buffer, at);
  return buffer;
}

/** -1 stands for null. */
function lengthOf(value: string | Buffer | null): number {
  if (value === null) return -1;
  return typeof value === 'string' ? Buffer.byteLength(value) : value.length;
}
