/** Sends a file, or a form with one, and tells how much of it has been sent. */
import { type Answer, ApiError, answerOf, type RouteName, target } from './client.js';

interface Upload {
  readonly route: RouteName;
  readonly query?: object;
  /** A file by itself is sent as what its type says. */
  readonly body: FormData | Blob;
  readonly headers?: Readonly<Record<string, string>>;
  /** @param part from 0 to 1 */
  readonly onProgress?: (part: number) => void;
  readonly signal?: AbortSignal;
}

/** `fetch` does not tell of bytes that are sent, so this does not use it. @throws ApiError */
export function upload({
  route,
  query,
  body,
  headers = {},
  onProgress,
  signal,
}: Upload): Promise<Answer<unknown>> {
  const { method, path } = target(route, { query });
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const fail = (message: string, code: string) =>
      reject(new ApiError(message, code, 0, undefined, undefined, []));
    request.upload.addEventListener('progress', ({ loaded, total, lengthComputable }) => {
      if (lengthComputable && total > 0) onProgress?.(loaded / total);
    });
    request.addEventListener('load', () => {
      const { status, responseText } = request;
      try {
        resolve(answerOf(path, status, (name) => request.getResponseHeader(name), responseText));
      } catch (thrown) {
        reject(thrown);
      }
    });
    request.addEventListener('error', () => fail('The gateway cannot be reached.', 'unreachable'));
    request.addEventListener('abort', () => fail('It was cancelled.', 'cancelled'));
    signal?.addEventListener('abort', () => request.abort());
    request.open(method, path);
    request.setRequestHeader('accept', 'application/json');
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.send(body);
  });
}
