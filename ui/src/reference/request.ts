/** Requests of the form: to the gateway itself, or to an endpoint by way of the gateway. */
import { call, get } from '../api/client.js';
import type { Operation } from './document.js';

export interface CallInput {
  /** Values of parameters, by place and name. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly body: string;
  readonly mediaType: string;
  readonly files: Readonly<Record<string, File>>;
}

export interface CallResult {
  readonly status: number;
  readonly ms: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly text: string;
  /** What an endpoint has printed. */
  readonly logs: readonly string[];
}

/** Where requests go. */
export type Destination =
  | { readonly kind: 'gateway' }
  | { readonly kind: 'host'; readonly host: string; readonly base: string };

/** More of an answer is not shown. */
const MOST_CHARACTERS = 200_000;

/** Path and query of a request. */
export function pathOf({ path, parameters }: Operation, typed: CallInput): string {
  const typedOf = (place: string, name: string) => typed.parameters[`${place} ${name}`] ?? '';
  const filled = path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(typedOf('path', name)));
  const query = parameters
    .filter(({ place, name }) => place === 'query' && typedOf(place, name) !== '')
    .map(({ name }): [string, string] => [name, typedOf('query', name)]);
  return query.length > 0 ? `${filled}?${new URLSearchParams(query)}` : filled;
}

/** @param onText gets what has come of the answer so far. @throws ApiError, or what `fetch` throws */
export async function send(
  destination: Destination,
  operation: Operation,
  typed: CallInput,
  signal: AbortSignal,
  onText: (text: string) => void,
): Promise<CallResult> {
  const headers = Object.fromEntries(
    operation.parameters
      .filter(({ place, name }) => place === 'header' && (typed.parameters[`header ${name}`] ?? '') !== '')
      .map(({ name }) => [name, typed.parameters[`header ${name}`] ?? '']),
  );
  const path = pathOf(operation, typed);
  return destination.kind === 'host'
    ? invoke(destination, operation, path, headers, typed, signal)
    : request(operation, path, headers, typed, signal, onText);
}

async function request(
  { method, bodies }: Operation,
  path: string,
  headers: Readonly<Record<string, string>>,
  { body, mediaType, files }: CallInput,
  signal: AbortSignal,
  onText: (text: string) => void,
): Promise<CallResult> {
  const isForm = mediaType === 'multipart/form-data';
  const hasBody = bodies.length > 0 && (isForm || body.trim() !== '');
  const startedAt = performance.now();
  const response = await fetch(path, {
    method,
    signal,
    headers: { ...headers, ...(hasBody && !isForm && { 'content-type': mediaType }) },
    ...(hasBody && { body: isForm ? formOf(body, files) : body }),
  });
  const ms = performance.now() - startedAt;
  return {
    status: response.status,
    ms,
    headers: [...response.headers],
    text: await read(response, onText),
    logs: [],
  };
}

/** Fields as a JSON object, and files. */
function formOf(fields: string, files: Readonly<Record<string, File>>): FormData {
  const form = new FormData();
  const given = fields.trim() === '' ? {} : (JSON.parse(fields) as Record<string, unknown>);
  for (const [name, value] of Object.entries(given)) form.set(name, String(value));
  for (const [name, file] of Object.entries(files)) form.set(name, file);
  return form;
}

async function read(response: Response, onText: (text: string) => void): Promise<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const part = await reader?.read().catch(() => undefined);
    if (!part || part.done) return text;
    text += part.value;
    onText(text);
    if (text.length <= MOST_CHARACTERS) continue;
    await reader?.cancel();
    return `${text.slice(0, MOST_CHARACTERS)}\n… and more`;
  }
}

/** Pages reach only the origin that they are from, so that the gateway sends the request. */
async function invoke(
  { host, base }: Extract<Destination, { kind: 'host' }>,
  operation: Operation,
  path: string,
  headers: Readonly<Record<string, string>>,
  { body, mediaType }: CallInput,
  signal: AbortSignal,
): Promise<CallResult> {
  const id = await endpointOf(host, base, operation);
  const hasBody = operation.bodies.length > 0 && body.trim() !== '';
  const { data } = await call(
    'POST /api/endpoints/{id}/invoke',
    {
      params: { id },
      body: {
        method: operation.method as 'GET',
        path: base + path,
        headers: { ...headers, ...(hasBody && { 'content-type': mediaType }) },
        ...(hasBody && { body }),
      },
    },
    signal,
  );
  return {
    status: data.status,
    ms: data.duration_ms,
    headers: Object.entries(data.headers),
    text: data.body ?? `${data.body_base64?.length ?? 0} characters of base64: no text`,
    logs: data.logs,
  };
}

/** The endpoint of an operation. @throws Error when there is none any more */
export async function endpointOf(host: string, base: string, { method, path }: Operation): Promise<string> {
  const candidates = await get('GET /api/endpoints', { query: { domain: host, search: path, limit: 100 } });
  const paths = [base + path, path];
  const endpoint = candidates.find((one) => one.method === method && paths.includes(one.path));
  if (!endpoint) throw new Error(`There is no endpoint for ${method} ${path} any more. Reload the page.`);
  return endpoint.id;
}
