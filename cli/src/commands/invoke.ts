/** `edge invoke` and `edge route`. */
import { UsageError } from '../errors.js';
import { readInput } from '../files.js';
import type { Routing } from '../generated/routes.js';
import { idOf } from '../names.js';
import { findProject } from '../project.js';
import type { CommonOptions, Session } from '../session.js';
import { safeLine, safeText } from '../text.js';

interface InvokeOptions extends CommonOptions {
  readonly data?: string;
  readonly header?: readonly string[];
  readonly version?: number;
  readonly host?: string;
  readonly endpoint?: string;
}
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH'] as const;
type Method = (typeof METHODS)[number];

export async function invoke(
  session: Session,
  options: InvokeOptions,
  verb: string,
  address: string,
): Promise<void> {
  const method = methodOf(verb);
  const { host, path } = await placeOf(options.host, address, options.endpoint !== undefined);
  const id =
    options.endpoint === undefined
      ? await endpointAt(session, host, method, path)
      : await idOf(session, 'endpoint', options.endpoint);
  const headers = Object.fromEntries((options.header ?? []).map(headerOf));
  const bytes = bodyOf(options.data);
  const invoked = await session.api.get('POST /api/endpoints/{id}/invoke', {
    params: { id },
    body: {
      ...{ method, path, headers: { ...defaultHeaders(bytes, headers), ...headers } },
      ...(bytes && { body_base64: bytes.toString('base64') }),
      ...(options.version !== undefined && { version: options.version }),
    },
  });
  const { out } = session;
  out.result(invoked, () => {
    const { status, duration_ms, version, request_id, body, body_base64, logs } = invoked;
    const painted = out.paint(status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green', String(status));
    out.line(`${painted} in ${duration_ms} ms, version ${version}, request ${safeLine(request_id)}`);
    for (const [name, value] of Object.entries(invoked.headers))
      out.line(`${out.paint('dim', `${safeLine(name)}:`)} ${safeLine(value)}`);
    if (body !== undefined && body !== '') out.line(`\n${safeText(body).trimEnd()}`);
    if (body_base64 !== undefined)
      out.note(
        `The body has ${Buffer.from(body_base64, 'base64').length} bytes that are no text; --json has them.`,
      );
    if (logs.length > 0) out.line(`\n${out.paint('bold', 'It printed:')}`);
    for (const line of logs) out.line(`  ${safeLine(line)}`);
  });
}

export async function route(
  session: Session,
  _options: CommonOptions,
  verb: string,
  address: string,
): Promise<void> {
  const { host, path } = await placeOf(undefined, address, false);
  const routing = await session.api.get('GET /api/route', {
    query: { host, method: verb.toUpperCase(), path },
  });
  session.out.result(routing, () => {
    const { match, next, reason } = routing;
    session.out.list([
      ['goes to', match ? nameOf(match) : 'no endpoint'],
      ...(match ? paramsOf(match) : []),
      ...(reason === null ? [] : ([['but', reason]] as const)),
      ...(next ? ([['otherwise to', nameOf(next)]] as const) : []),
    ]);
  });
}

type Match = NonNullable<Routing['match']>;

function nameOf({ name, method, domain, route: pattern, endpoint_id }: Match): string {
  return `${name}: ${method} ${domain}${pattern} (${endpoint_id})`;
}

function paramsOf({ params }: Match): (readonly [string, string])[] {
  return Object.entries(params).map(([name, value]) => [`{${name}}`, value]);
}

async function endpointAt(session: Session, host: string, method: Method, path: string): Promise<string> {
  const query = { host, method, path };
  const { match, reason } = await session.api.get('GET /api/route', { query });
  if (match) return match.endpoint_id;
  throw new UsageError(
    reason ?? `No endpoint answers ${method} ${host}${path}`,
    '`edge endpoint list` lists all; --endpoint names one.',
  );
}

/** Host and path of `/PATH`, `HOST/PATH` or a URL. */
async function placeOf(
  given: string | undefined,
  address: string,
  isHostKnown: boolean,
): Promise<{ host: string; path: string }> {
  if (!address.startsWith('/')) {
    const text = /^https?:\/\//.test(address) ? address : `http://${address}`;
    if (!URL.canParse(text)) throw new UsageError(`${address} is no path and no URL`, 'Such as /hello/Ada.');
    const { hostname, pathname, search } = new URL(text);
    return { host: given ?? hostname, path: `${pathname}${search}` };
  }
  const host = given ?? (await hostOfFolder()) ?? (isHostKnown ? '' : undefined);
  if (host === undefined) throw new UsageError('Of which host?', 'Give --host, or HOST/PATH.');
  return { host: host === '*' ? 'localhost' : host, path: address };
}

/** Undefined where there is no folder with endpoints, or where they have several hosts. */
async function hostOfFolder(): Promise<string | undefined> {
  const [host, ...others] = new Set((await findProject('.'))?.endpoints.map((one) => one.host));
  return others.length === 0 ? host : undefined;
}

function methodOf(text: string): Method {
  const method = METHODS.find((one) => one === text.toUpperCase());
  if (method) return method;
  throw new UsageError(`${text} is no method of endpoints`, `They have ${METHODS.join(', ')}.`);
}

function headerOf(text: string): [string, string] {
  const [, name, value] = /^([^:]+): *(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new UsageError(`${text} is no header`, 'Such as "X-User: ada".');
  return [name, value];
}

function bodyOf(data: string | undefined): Buffer | undefined {
  if (data === undefined) return undefined;
  if (!data.startsWith('@')) return Buffer.from(data);
  return readInput(data.slice(1));
}

/** A body that is JSON is said to be. */
function defaultHeaders(
  body: Buffer | undefined,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const hasType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  if (!body || hasType) return {};
  try {
    JSON.parse(body.toString('utf8'));
    return { 'Content-Type': 'application/json' };
  } catch {
    return {};
  }
}
