/** Multipart forms, as browsers write them. */

/** A field, or a file when it has a file name. */
export interface FormPart {
  readonly name: string;
  readonly filename?: string;
  readonly content: Buffer | string;
}

const BOUNDARY = 'boundary-of-the-tests';

/** Writes a form: its header, and its body. */
export function multipart(parts: readonly FormPart[]): { headers: Record<string, string>; body: Buffer } {
  const pieces = parts.flatMap(({ name, filename, content }) => [
    Buffer.from(
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"` +
        (filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: application/octet-stream`) +
        '\r\n\r\n',
    ),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ]);
  return {
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
    body: Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)]),
  };
}
