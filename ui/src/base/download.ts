/** Files that are made in the page. */

/** The browser reads a file after the click that asks for it. */
const KEPT_MS = 60_000;

/** Has the browser save an OpenAPI document. @param name of what it is of */
export function saveDocument(name: string, document: Readonly<Record<string, unknown>>): void {
  saveFile(`${name}.openapi.json`, JSON.stringify(document, null, 2), 'application/json');
}

/**
 * Has the browser save a file.
 * @param name of the file; characters that no file should have are replaced
 * @param type unless given one that is never run
 */
export function saveFile(name: string, content: BlobPart, type = 'application/octet-stream'): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name.replace(/[^\w.-]/g, '_');
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}
