/** The driver of `http` services: requests of handlers to the APIs of others, through this machine. */
import { FORMATS } from '../../../model/formats.js';
import { apiKeyHeader, headerProblem } from '../../../model/http-service.js';
import { HTTP_METHODS, type HttpMethod, type ServiceConfig } from '../../../model/service-configs.js';
import { MAX_BODY_BYTES } from '../../../wire/codec.js';
import { type Connection, defineDriver, openOrClose } from '../../driver.js';
import { AbortSource, type DriverCall, signalOf } from '../../driver-call.js';
import { type DriverAnswer, invalid } from '../../operations.js';
import { Type } from '../../schema.js';
import { ServiceError } from '../../service-error.js';
import { HttpConnections } from './exchange.js';
import { Targets } from './target.js';

type Config = ServiceConfig<'http'>;

interface Header {
  readonly name: string;
  readonly value: string;
}

interface RequestArgs {
  readonly method: HttpMethod;
  readonly path: string;
  readonly headers: readonly Header[];
}

const MAX_HEADERS = 100;
const MAX_PATH_BYTES = 16 * 1024;

const Request = Type.Object({
  method: Type.Unsafe<HttpMethod>({ type: 'string', enum: [...HTTP_METHODS] }),
  path: Type.String({ minLength: 1, maxLength: MAX_PATH_BYTES }),
  headers: Type.Unsafe<readonly Header[]>({
    ...Type.Array(
      Type.Object({
        name: Type.String({ format: 'header-name' }),
        value: Type.String({ format: 'header-value', maxLength: MAX_PATH_BYTES }),
      }),
      { maxItems: MAX_HEADERS },
    ),
    default: [],
  }),
});

export const httpDriver = defineDriver({
  type: 'http',
  concurrency: ({ pool_size }) => pool_size,
  connect: async (config, context) => {
    const connection = new HttpConnection(config, Math.min(context.answerBytes, MAX_BODY_BYTES));
    return openOrClose(context, connection, () => connection.test());
  },
  operations: {
    request: { args: Request, run: (connection, args, call) => connection.request(args, call) },
  },
});

class HttpConnection implements Connection {
  readonly #targets: Targets;
  readonly #connections: HttpConnections;
  readonly #headers: readonly Header[];
  readonly #methods: readonly HttpMethod[];
  readonly #closing = new AbortSource();

  constructor(config: Config, answerBytes: number) {
    this.#targets = new Targets(config);
    this.#connections = new HttpConnections(config, answerBytes);
    this.#headers = headersOf(config);
    this.#methods = config.methods ?? HTTP_METHODS;
  }

  /** Whatever the server answers, it can be reached: few APIs have something at their base URL. */
  async test(): Promise<string> {
    const { base } = this.#targets;
    const request = { url: base, method: 'HEAD', headers: this.#complete([], true), body: Buffer.alloc(0) };
    try {
      const { status, headers } = await this.#connections.send(request, signalOf(this.#closing));
      return `${productOf(headers)} at ${base.host}, which answered HEAD ${base.pathname} with ${status}`;
    } catch (thrown) {
      // There is no service without it.
      if (thrown instanceof ServiceError && thrown.kind === 'backend') {
        throw new ServiceError('unavailable', thrown.message, { cause: thrown });
      }
      throw thrown;
    }
  }

  async request({ method, path, headers }: RequestArgs, call: DriverCall): Promise<DriverAnswer> {
    if (!this.#methods.includes(method)) {
      const allowed = this.#methods.join(', ');
      throw invalid('args.method', `${method} is not allowed; the config of the service allows ${allowed}`);
    }
    const { url, isBase } = this.#targets.find(path);
    const request = { url, method, headers: this.#complete(headers, isBase), body: call.payload };
    try {
      const { status, headers: answered, body } = await this.#connections.send(request, signalOf(call));
      return { result: { status, headers: pairsOf(answered) }, payload: body };
    } catch (thrown) {
      // That another host cannot be reached says nothing of the connections with the server of the service.
      if (!isBase && thrown instanceof ServiceError && thrown.kind === 'unavailable') {
        throw new ServiceError('backend', thrown.message, { cause: thrown });
      }
      throw thrown;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#connections.close();
  }

  /** Those of the config go to no other server: they may be secrets. */
  #complete(given: readonly Header[], isBase: boolean): string[] {
    const own = isBase ? this.#headers : [];
    for (const { name } of given) {
      const isTaken = own.some((header) => header.name.toLowerCase() === name.toLowerCase());
      const problem = headerProblem(name) ?? (isTaken ? `"${name}" is set by the service` : undefined);
      if (problem !== undefined) throw invalid('args.headers', problem);
    }
    const all = [...given, ...own];
    const hasAgent = all.some(({ name }) => name.toLowerCase() === 'user-agent');
    if (!hasAgent) all.push({ name: 'User-Agent', value: 'edge-gateway' });
    return all.flatMap(({ name, value }) => [name, value]);
  }
}

/** The headers of the config, credentials included. */
function headersOf({ headers = {}, token, username, password, api_key, api_key_header }: Config): Header[] {
  const all = Object.entries(headers).map(([name, value]) => ({ name, value }));
  const add = (setting: string, name: string, value: string) => {
    // Secrets that the config refers to are not known when it is checked.
    if (FORMATS['header-value']?.(value) === undefined) all.push({ name, value });
    else throw new ServiceError('unavailable', `${setting}: has characters that no header can have`);
  };
  if (token != null) add('token', 'Authorization', `Bearer ${token}`);
  if (username !== undefined) {
    const pair = Buffer.from(`${username}:${password ?? ''}`).toString('base64');
    add('username', 'Authorization', `Basic ${pair}`);
  }
  if (api_key != null) add('api_key', apiKeyHeader(api_key_header), api_key);
  return all;
}

function pairsOf(raw: readonly string[]): Header[] {
  const pairs: Header[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2)
    pairs.push({ name: raw[at] ?? '', value: raw[at + 1] ?? '' });
  return pairs;
}

function productOf(raw: readonly string[]): string {
  return pairsOf(raw).find(({ name }) => name.toLowerCase() === 'server')?.value ?? 'the HTTP server';
}
