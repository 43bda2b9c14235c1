/**
 * A mail server as a process of its own, for `smtp.ts`. Its settings are JSON on the command line. Each mail it takes
 * becomes a file; some recipients it refuses.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { refusedRecipient, refusedSender, type SmtpSettings, tooBusyRecipient } from './smtp-settings.js';

const settings = JSON.parse(process.argv[2] ?? '{}') as SmtpSettings;

const options: SMTPServerOptions = {
  secure: settings.encryption === 'tls',
  ...(settings.key !== undefined && { key: readFileSync(settings.key) }),
  ...(settings.cert !== undefined && { cert: readFileSync(settings.cert) }),
  disabledCommands: [
    ...(settings.encryption === 'starttls' ? [] : ['STARTTLS']),
    ...(settings.password === undefined ? ['AUTH'] : []),
  ],
  authMethods: ['PLAIN', 'LOGIN'],
  authOptional: settings.password === undefined,
  // The test server accepts passwords without encryption.
  allowInsecureAuth: true,
  disableReverseLookup: true,
  onAuth: ({ username, password }, _session, callback) => {
    if (username === settings.username && password === settings.password) callback(null, { user: username });
    else callback(Object.assign(new Error('5.7.8 bad credentials'), { responseCode: 535 }));
  },
  onMailFrom: ({ address }, _session, callback) => {
    callback(
      address === refusedSender ? Object.assign(new Error('sender refused'), { responseCode: 553 }) : null,
    );
  },
  onRcptTo: ({ address }, _session, callback) => {
    if (address === refusedRecipient)
      callback(Object.assign(new Error('no such mailbox'), { responseCode: 550 }));
    else if (address === tooBusyRecipient) callback(Object.assign(new Error('later'), { responseCode: 451 }));
    else callback();
  },
  onData: (stream, session, callback) => {
    const store = async () => {
      const raw = await buffer(stream);
      const mail = {
        secure: session.secure,
        user: session.user ?? null,
        from: session.envelope.mailFrom === false ? null : session.envelope.mailFrom.address,
        to: session.envelope.rcptTo.map(({ address }) => address),
        raw: raw.toString('latin1'),
      };
      const id = randomUUID();
      await writeFile(join(settings.folder, `${id}.part`), JSON.stringify(mail));
      await rename(join(settings.folder, `${id}.part`), join(settings.folder, `${id}.json`));
    };
    store().then(
      () => callback(),
      (error: Error) => callback(error),
    );
  },
};

const server = new SMTPServer(options);
// Clients that disconnect, or reject the certificate.
server.on('error', () => undefined);
server.listen(settings.port, '127.0.0.1');
