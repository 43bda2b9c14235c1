/**
 * The email driver. Its pool connects on demand and replaces idle connections that the server has closed; so a
 * connection that is lost between two mails is not reported.
 */
import { createTransport } from 'nodemailer';
import SMTPConnection, {
  type SMTPConnectionAuth,
  type SMTPConnectionOptions,
} from 'nodemailer/lib/smtp-connection';
import { toError } from '../../../errors.js';
import type { ServiceConfig } from '../../../model/service-configs.js';
import { type Connection, defineDriver } from '../../driver.js';
import { type Abortable, AbortSource, type DriverCall, signalOf, stoppedOnAbort } from '../../driver-call.js';
import { networkReason, REASONS, unavailable } from '../../failures.js';
import { type DriverAnswer, NO_ARGS } from '../../operations.js';
import { ServiceError } from '../../service-error.js';
import { type Mailbox, readMessage } from './message.js';

type Config = ServiceConfig<'email'>;

const CONNECTIONS = 5;
const DEFAULT_PORTS = { none: 25, starttls: 587, tls: 465 } as const;
/** Shorter than the timeout of the actor, whose error would not give the reason. */
const CONNECT_TIMEOUT_MS = 4_000;
/** Timeout of a silent server. Some scan a mail for a while before they accept it. */
const IDLE_TIMEOUT_MS = 60_000;
/** Reply code of a server that closes the connection. */
const CLOSING = 421;

export const emailDriver = defineDriver({
  type: 'email',
  concurrency: () => CONNECTIONS,
  connect: async (config, context) => {
    const access = accessOf(config);
    await tryLogin(access, context);
    return new EmailConnection(access, { address: config.from_address, name: config.from_name ?? '' });
  },
  operations: {
    send: { args: NO_ARGS, run: (email, _args, call) => email.send(call) },
  },
});

/** Address, options and credentials of a server. */
interface SmtpAccess {
  readonly where: string;
  readonly options: SMTPConnectionOptions;
  /** Undefined for servers that require no login. */
  readonly auth: SMTPConnectionAuth | undefined;
}

function accessOf(config: Config): SmtpAccess {
  const { host, encryption, username, password, ssl_root_cert } = config;
  const port = config.port ?? DEFAULT_PORTS[encryption];
  return {
    where: `${host}:${port}`,
    options: {
      host,
      port,
      secure: encryption === 'tls',
      requireTLS: encryption === 'starttls',
      ignoreTLS: encryption === 'none',
      tls: ssl_root_cert === undefined ? {} : { ca: ssl_root_cert },
      connectionTimeout: CONNECT_TIMEOUT_MS,
      greetingTimeout: CONNECT_TIMEOUT_MS,
      dnsTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: IDLE_TIMEOUT_MS,
      // Closing does not wait for the server.
      socketCloseTimeout: 0,
    },
    auth: username === undefined ? undefined : { user: username, pass: password ?? '' },
  };
}

/**
 * Connects, negotiates encryption, and logs in, without sending anything.
 * @throws ServiceError
 */
async function tryLogin({ options, auth, where }: SmtpAccess, trying: Abortable): Promise<void> {
  const connection = new SMTPConnection(options);
  const logIn = () =>
    new Promise<void>((resolve, reject) => {
      connection.once('error', reject);
      connection.once('end', () => reject(new Error('the server closed the connection')));
      connection.connect((error) => {
        if (error) reject(error);
        // Also if the server offers no login: credentials must not be ignored silently.
        else if (auth) connection.login({ ...auth }, (failure) => (failure ? reject(failure) : resolve()));
        else resolve();
      });
    });
  try {
    await stoppedOnAbort(
      trying,
      () => connection.close(),
      async () => {
        await logIn();
        await quit(connection);
      },
    );
  } catch (thrown) {
    throw connectError(thrown, where);
  } finally {
    connection.close();
  }
}

/** Ends the session with QUIT; errors are ignored. */
function quit(connection: SMTPConnection): Promise<void> {
  return new Promise((resolve) => {
    connection.once('end', resolve);
    connection.once('error', () => resolve());
    connection.quit();
  });
}

class EmailConnection implements Connection {
  readonly #access: SmtpAccess;
  readonly #sender: Mailbox;
  readonly #transport;
  readonly #closing = new AbortSource();

  constructor(access: SmtpAccess, sender: Mailbox) {
    this.#access = access;
    this.#sender = sender;
    const { options, auth } = access;
    this.#transport = createTransport({
      ...options,
      ...(auth && { auth, forceAuth: true }),
      pool: true,
      maxConnections: CONNECTIONS,
      // A mail may have been sent although its connection was lost.
      maxRequeues: 0,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  async test(): Promise<string> {
    await tryLogin(this.#access, this.#closing);
    return `the mail server at ${this.#access.where}`;
  }

  async send(call: DriverCall): Promise<DriverAnswer> {
    const message = readMessage(call.payload, this.#sender);
    try {
      const { messageId, accepted, rejected } = await this.#transport.sendMail({
        ...message,
        signal: signalOf(call),
        xMailer: false,
      });
      return { result: { message_id: messageId, accepted, rejected } };
    } catch (thrown) {
      throw sendError(thrown, this.#access.where);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#transport.close({ force: true });
  }
}

/** An error with the properties that nodemailer adds. */
interface MailError extends Error {
  readonly code?: string;
  /** The network or certificate error code that nodemailer has replaced. */
  readonly originalCode?: string;
  /** The reply of the server, and its code. */
  readonly response?: string;
  readonly responseCode?: number;
}

/** The error of a mail that was not sent. */
function sendError(thrown: unknown, where: string): ServiceError {
  const error: MailError = toError(thrown);
  if (error.code === 'EABORT') {
    return new ServiceError('deadline', 'the mail was aborted; whether it was sent is not known', {
      cause: error,
    });
  }
  const isRefusal = error.code === 'EENVELOPE' || error.code === 'EMESSAGE';
  if (isRefusal && error.responseCode !== CLOSING) {
    return new ServiceError('backend', error.message, { cause: error });
  }
  return connectError(error, where);
}

/** The error of a connection that could not be opened or was lost. */
function connectError(thrown: unknown, where: string): ServiceError {
  return unavailable(thrown, where, reasonOf(toError(thrown), where));
}

function reasonOf(error: MailError, where: string): string | undefined {
  const cause = networkReason({ code: error.originalCode }, where);
  if (cause !== undefined) return cause;
  switch (error.code) {
    case 'EAUTH':
      return `${REASONS.login(where)}: ${error.response ?? error.message}`;
    case 'ETIMEDOUT':
      return REASONS.silent(where);
    case 'ETLS':
      return error.response === undefined
        ? undefined
        : `the server at ${where} does not offer STARTTLS, and the config asks for it: ${error.response}`;
    case 'ESOCKET':
      return error.originalCode === 'ERR_SSL_WRONG_VERSION_NUMBER'
        ? `the server at ${where} does not begin with TLS: its encryption may be starttls, or none`
        : undefined;
    case 'ECONNECTION':
      return error.response === undefined ? REASONS.closed(where) : undefined;
    default:
      return undefined;
  }
}
