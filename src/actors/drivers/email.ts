/**
 * The email driver. Its pool connects when there is something to send, and replaces connections that servers close
 * when they are idle; so a connection that breaks between two mails is nothing to tell of.
 */
import { createTransport } from 'nodemailer';
import type { ServiceConfig } from '../../service-configs.js';
import type { Connection, Driver, DriverAnswer, DriverCall } from '../driver.js';
import { connectError, sendError } from './email-errors.js';
import { type SmtpAccess, tryLogin } from './email-login.js';
import { type Mailbox, readMessage } from './email-message.js';

type Config = ServiceConfig<'email'>;

const CONNECTIONS = 5;
const DEFAULT_PORTS = { none: 25, starttls: 587, tls: 465 } as const;
/** Whoever tests a connection wants to read the reason before the actor's own limit. */
const CONNECT_TIMEOUT_MS = 4_000;
/** A server that says nothing for this long is gone. Some look at a mail for a while before they take it. */
const SILENCE_LIMIT_MS = 60_000;

export const emailDriver: Driver<'email'> = {
  type: 'email',
  operations: ['send'],
  concurrency: () => CONNECTIONS,
  async connect(config, context) {
    const access = accessOf(config);
    const where = `${config.host}:${String(access.options.port)}`;
    try {
      await tryLogin(access, context.signal);
    } catch (thrown) {
      throw connectError(thrown, where);
    }
    return new EmailConnection(access, where, { address: config.from_address, name: config.from_name ?? '' });
  },
};

function accessOf(config: Config): SmtpAccess {
  const { host, encryption, username, password, ssl_root_cert } = config;
  return {
    options: {
      host,
      port: config.port ?? DEFAULT_PORTS[encryption],
      secure: encryption === 'tls',
      requireTLS: encryption === 'starttls',
      ignoreTLS: encryption === 'none',
      tls: ssl_root_cert === undefined ? {} : { ca: ssl_root_cert },
      connectionTimeout: CONNECT_TIMEOUT_MS,
      greetingTimeout: CONNECT_TIMEOUT_MS,
      dnsTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SILENCE_LIMIT_MS,
      // Closing does not wait for the server.
      socketCloseTimeout: 0,
    },
    auth: username === undefined ? undefined : { user: username, pass: password ?? '' },
  };
}

class EmailConnection implements Connection {
  readonly #access: SmtpAccess;
  readonly #where: string;
  readonly #sender: Mailbox;
  readonly #transport;
  readonly #closing = new AbortController();

  constructor(access: SmtpAccess, where: string, sender: Mailbox) {
    this.#access = access;
    this.#where = where;
    this.#sender = sender;
    const { options, auth } = access;
    this.#transport = createTransport({
      ...options,
      ...(auth && { auth, forceAuth: true }),
      pool: true,
      maxConnections: CONNECTIONS,
      // A mail whose connection broke may have been sent.
      maxRequeues: 0,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  async test(): Promise<string> {
    try {
      await tryLogin(this.#access, this.#closing.signal);
    } catch (thrown) {
      throw connectError(thrown, this.#where);
    }
    return `the mail server at ${this.#where}`;
  }

  async call({ payload, signal }: DriverCall): Promise<DriverAnswer> {
    const message = readMessage(payload, this.#sender);
    try {
      const { messageId, accepted, rejected } = await this.#transport.sendMail({
        ...message,
        signal,
        xMailer: false,
      });
      return { result: { message_id: messageId, accepted, rejected } };
    } catch (thrown) {
      throw sendError(thrown, this.#where);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#transport.close({ force: true });
  }
}
