/** A small HTTP client for tests: sends any input, valid or not, and keeps no connections open. */
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Parsed when it is JSON, undefined when it is empty, else the text. */
  readonly body: unknown;
}

export interface HttpRequest {
  readonly headers?: OutgoingHttpHeaders;
  /** Sent as JSON, except for text or bytes, which are sent unchanged. */
  readonly body?: unknown;
}

export interface HttpClient {
  send(method: string, path: string, options?: HttpRequest): Promise<HttpResponse>;
  get(path: string, options?: HttpRequest): Promise<HttpResponse>;
  post(path: string, body?: unknown, options?: HttpRequest): Promise<HttpResponse>;
  put(path: string, body?: unknown, options?: HttpRequest): Promise<HttpResponse>;
  delete(path: string, options?: HttpRequest): Promise<HttpResponse>;
}

/** @param check is called with every answer */
export function createClient(
  baseUrl: string,
  check: (method: string, path: string, response: HttpResponse) => void = () => undefined,
): HttpClient {
  const send = async (method: string, path: string, options: HttpRequest = {}) => {
    const response = await exchange(new URL(path, baseUrl), method, options);
    check(method, path, response);
    return response;
  };
  return clientBy(send);
}

/** A client whose requests are all sent by one function. */
export function clientBy(send: HttpClient['send']): HttpClient {
  return {
    send,
    get: (path, options) => send('GET', path, options),
    post: (path, body, options) => send('POST', path, { ...options, body }),
    put: (path, body, options) => send('PUT', path, { ...options, body }),
    delete: (path, options) => send('DELETE', path, options),
  };
}

function exchange(url: URL, method: string, { headers, body }: HttpRequest): Promise<HttpResponse> {
  const isRaw = body === undefined || typeof body === 'string' || Buffer.isBuffer(body);
  const payload = isRaw ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      {
        method,
        agent: false,
        headers: {
          ...(payload !== undefined && {
            'content-type': 'application/json',
            ...(!headers?.['transfer-encoding'] && { 'content-length': Buffer.byteLength(payload) }),
          }),
          ...headers,
        },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const isJson = /json/.test(incoming.headers['content-type'] ?? '');
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            body: text === '' ? undefined : isJson ? JSON.parse(text) : text,
          });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(payload);
  });
}
