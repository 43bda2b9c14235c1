/** One HTTP request, by way of a proxy where the environment names one, with errors that say what to do. */
import { hasProxy } from './environment.js';
import { CliError, InterruptError } from './errors.js';

interface SentRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | FormData;
  readonly redirect: 'manual';
  readonly signal: AbortSignal;
}

/** @throws CliError that names the server and the reason */
export async function send(url: string, request: SentRequest): Promise<Response> {
  try {
    return await (hasProxy() ? sendByProxy(url, request) : fetch(url, request));
  } catch (thrown) {
    throw request.signal.aborted ? new InterruptError() : unreachable(new URL(url).origin, thrown);
  }
}

let proxies: import('undici').EnvHttpProxyAgent | undefined;

/** Node 20 itself knows no proxies. */
async function sendByProxy(url: string, request: SentRequest): Promise<Response> {
  const { EnvHttpProxyAgent, FormData: OtherForm, fetch: fetchBy } = await import('undici');
  proxies ??= new EnvHttpProxyAgent();
  const { body, ...rest } = request;
  let sent: string | InstanceType<typeof OtherForm> | undefined;
  if (body instanceof FormData) {
    sent = new OtherForm();
    for (const [name, value] of body.entries()) {
      if (typeof value === 'string') sent.append(name, value);
      else sent.append(name, value, value.name);
    }
  } else sent = body;
  const options = { ...rest, ...(sent !== undefined && { body: sent }), dispatcher: proxies };
  return (await fetchBy(url, options)) as unknown as Response;
}

/** What an error code of a connection means, and what to do about it. */
const REASONS: Readonly<Record<string, readonly [reason: string, hint: string]>> = {
  ECONNREFUSED: [
    'nothing listens there',
    'Is the gateway running (`npm run up`)? Is the port that of the API?',
  ],
  ENOTFOUND: ['there is no such host', 'Check the URL: `edge context list`, or EDGE_URL.'],
  EAI_AGAIN: ['the name of the host cannot be looked up now', 'Check the network, then try again.'],
  ETIMEDOUT: ['it does not answer', 'Check the network, and whether a proxy is needed (HTTPS_PROXY).'],
  EHOSTUNREACH: ['there is no way to it', 'Check the network, and whether a proxy is needed (HTTPS_PROXY).'],
  ECONNRESET: ['the connection was closed', 'Try again; `edge status` shows whether the gateway is well.'],
  ERR_SSL_WRONG_VERSION_NUMBER: ['it does not speak TLS', 'Is the URL http:// instead of https://?'],
  CERT_HAS_EXPIRED: ['its certificate has expired', 'Have it renewed.'],
  ERR_TLS_CERT_ALTNAME_INVALID: ['its certificate is for another name', 'Use the name that it is for.'],
};
const UNTRUSTED = [
  ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  ...['UNABLE_TO_GET_ISSUER_CERT', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'],
];
/** Codes of the HTTP client for the same. */
const SAME: Readonly<Record<string, string>> = {
  UND_ERR_CONNECT_TIMEOUT: 'ETIMEDOUT',
  UND_ERR_HEADERS_TIMEOUT: 'ETIMEDOUT',
  UND_ERR_SOCKET: 'ECONNRESET',
  EPIPE: 'ECONNRESET',
};

function unreachable(origin: string, thrown: unknown): CliError {
  const cause = causeOf(thrown);
  const code = SAME[cause.code ?? ''] ?? cause.code ?? '';
  const [reason, hint] = UNTRUSTED.includes(code)
    ? [
        'its certificate is of an authority that is not known here',
        'Set NODE_EXTRA_CA_CERTS to the file of the authority.',
      ]
    : (REASONS[code] ?? [cause.message, 'Check the URL: `edge context list`, or EDGE_URL.']);
  return new CliError(`${origin} cannot be reached: ${reason}`, { code: 'unreachable', hint });
}

/** The innermost error; of several addresses that were tried the first one. */
function causeOf(thrown: unknown): { readonly code?: string; readonly message: string } {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  if (error instanceof AggregateError && error.errors.length > 0) return causeOf(error.errors[0]);
  return error.cause instanceof Error ? causeOf(error.cause) : error;
}
