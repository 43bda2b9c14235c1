/** Tries whether a mail server can be reached and lets us in, without sending anything. */
import SMTPConnection, {
  type SMTPConnectionAuth,
  type SMTPConnectionOptions,
} from 'nodemailer/lib/smtp-connection';

/** How to reach a server. */
export interface SmtpAccess {
  readonly options: SMTPConnectionOptions;
  /** Undefined for servers that want no login. */
  readonly auth: SMTPConnectionAuth | undefined;
}

/**
 * Connects, negotiates encryption, and logs in.
 * @param signal ends the try at once
 * @throws Error of nodemailer
 */
export async function tryLogin({ options, auth }: SmtpAccess, signal: AbortSignal): Promise<void> {
  const connection = new SMTPConnection(options);
  const close = () => connection.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      connection.once('error', reject);
      connection.once('end', () => reject(new Error('the server closed the connection')));
      connection.connect((error) => {
        if (error) reject(error);
        // Also when the server offers no login: what is in the config must not be left out silently.
        else if (auth) connection.login({ ...auth }, (failure) => (failure ? reject(failure) : resolve()));
        else resolve();
      });
    });
    await quit(connection);
  } finally {
    signal.removeEventListener('abort', close);
    connection.close();
  }
}

/** Takes leave, as servers wish, but a failure does not matter any more. */
function quit(connection: SMTPConnection): Promise<void> {
  return new Promise((resolve) => {
    connection.once('end', resolve);
    connection.once('error', () => resolve());
    connection.quit();
  });
}
