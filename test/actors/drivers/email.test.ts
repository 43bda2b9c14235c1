import { expect } from 'chai';
import { emailDriver } from '../../../src/actors/drivers/email/driver.js';
import { type SmtpBackend, startSmtpBackend } from '../../support/backends/smtp.js';
import {
  type ReceivedMail,
  refusedRecipient,
  refusedSender,
  tooBusyRecipient,
} from '../../support/backends/smtp-settings.js';
import {
  ALL_BYTES,
  connectTo,
  expectServiceError,
  expectToCloseAtOnce,
  type TestConnection,
  useDriver,
} from '../../support/driver-calls.js';
import { eventually } from '../../support/eventually.js';
import { driverSuite } from '../driver-suite.js';

const MAIL = { to: ['reader@example.com'], subject: 'Hello', text: 'A text' };

driverSuite(emailDriver, {
  start: startSmtpBackend,
  wrongPassword: (config) => ({ ...config, password: 'wrong' }),
  at: (config, host, port) => ({ ...config, host, port }),
  call: {
    operation: 'send',
    payload: JSON.stringify(MAIL),
    check: (answer) => expect(answer.result).to.have.property('accepted').that.deep.equals(MAIL.to),
  },
});

describe('email driver', () => {
  let backend: SmtpBackend;
  let connection: TestConnection;
  let subjects = 0;

  useDriver(emailDriver, startSmtpBackend, (...used) => {
    [backend, connection] = used;
  });

  const send = async (mail: object) => (await connection.send('send', {}, JSON.stringify(mail))).result;

  /** Sends a mail with a unique subject; returns it as received by the server. */
  const sent = async (mail: object): Promise<ReceivedMail> => {
    subjects++;
    const subject = `Mail ${subjects}`;
    await send({ ...MAIL, ...mail, subject });
    const found = (await backend.received()).find(({ raw }) => raw.includes(`Subject: ${subject}\r\n`));
    if (!found) throw new Error('The mail has not arrived');
    return found;
  };

  it('sends a mail over an encrypted connection, logged in, from the address of the config', async () => {
    const mail = await sent({});
    expect(mail).to.include({ secure: true, user: 'mailer', from: 'service@example.com' });
    expect(mail.to).to.deep.equal(['reader@example.com']);
    expect(mail.raw).to.match(/^From: The Service <service@example\.com>\r$/m);
    expect(mail.raw).to.match(/^To: reader@example\.com\r$/m);
    expect(mail.raw).to.match(/\r\n\r\nA text/);
    expect(mail.raw).not.to.match(/nodemailer/i);
  });

  it('returns the id of a mail and its recipients', async () => {
    const result = (await send({ ...MAIL, cc: ['cc@example.com'], bcc: ['bcc@example.com'] })) as {
      message_id: string;
    };
    expect(result).to.deep.include({
      accepted: ['reader@example.com', 'cc@example.com', 'bcc@example.com'],
      rejected: [],
    });
    expect(result.message_id).to.match(/^<[^@\s]+@example\.com>$/);
    const [mail] = (await backend.received()).filter(({ raw }) => raw.includes(result.message_id));
    expect(mail?.to).to.include('bcc@example.com');
    expect(mail?.raw).to.match(/^Cc: cc@example\.com\r$/m);
    expect(mail?.raw).not.to.include('bcc@example.com');
  });

  it('sends a mail with its own sender, a reply address, HTML and files', async () => {
    const mail = await sent({
      from: { address: 'other@example.com', name: 'Grüße, "Otto"' },
      reply_to: 'reply@example.com',
      html: '<p>Grüße</p>',
      attachments: [
        { filename: 'bytes ü.bin', content_type: 'application/x-test', base64: ALL_BYTES.toString('base64') },
        { filename: 'empty.txt', base64: '' },
      ],
    });
    expect(mail.from).to.equal('other@example.com');
    expect(mail.raw).to.match(/^From: =\?UTF-8\?.+\?= <other@example\.com>\r$/m);
    expect(mail.raw).to.match(/^Reply-To: reply@example\.com\r$/m);
    expect(mail.raw).to.include('Content-Type: multipart/mixed');
    expect(mail.raw).to.match(/Content-Type: application\/x-test/);
    const base64 = ALL_BYTES.toString('base64');
    expect(mail.raw.replaceAll('\r\n', '')).to.include(base64);
    expect(mail.raw).to.include('empty.txt');
    expect(mail.raw).to.match(/Content-Type: text\/html; charset=utf-8/);
  });

  it('sends a mail with a file of 2 MiB', async () => {
    const content = Buffer.alloc(2 * 1024 * 1024, ALL_BYTES);
    const mail = await sent({ attachments: [{ filename: 'large.bin', base64: content.toString('base64') }] });
    const [, encoded = ''] =
      /large\.bin\r\n(?:[^\r\n]+\r\n)*\r\n([\s\S]+?)\r\n(?:\r\n)?--/.exec(mail.raw) ?? [];
    expect(Buffer.from(encoded, 'base64').equals(content)).to.equal(true);
  });

  it('names the recipients of a mail that the server refused', async () => {
    const result = await send({ ...MAIL, to: [refusedRecipient, 'reader@example.com'] });
    expect(result).to.deep.include({ accepted: ['reader@example.com'], rejected: [refusedRecipient] });
  });

  it('reports why a mail server refuses the recipient or the sender', async () => {
    await expectServiceError(send({ ...MAIL, to: [refusedRecipient] }), 'backend', /550 .*no such mailbox/);
    await expectServiceError(send({ ...MAIL, to: [tooBusyRecipient] }), 'backend', /451 .*later/);
    const from = { address: refusedSender };
    await expectServiceError(send({ ...MAIL, from }), 'backend', /553 .*sender refused/);
    expect(await send(MAIL)).to.deep.include({ accepted: MAIL.to });
  });

  it('refuses a mail that would inject headers or commands', async () => {
    for (const [mail, message] of [
      [{ subject: 'a\r\nBcc: x@example.com' }, /payload\.subject: must be one line/],
      [{ subject: 'a\nb' }, /payload\.subject/],
      [{ subject: 'a\u0085b' }, /payload\.subject/],
      [{ subject: 'a\u2028b' }, /payload\.subject/],
      [{ to: ['a@example.com\r\nRCPT TO:<x@example.com>'] }, /payload\.to\[0\]: must be one line/],
      [{ to: ['a@example.com>,<x@example.com'] }, /payload\.to\[0\]: must be an e-mail address/],
      [{ to: ['a@example.com, x@example.com'] }, /payload\.to\[0\]/],
      [{ cc: ['A <a@example.com>'] }, /payload\.cc\[0\]/],
      [{ bcc: ['nobody'] }, /payload\.bcc\[0\]/],
      [{ reply_to: 'a@example.com\nX: y' }, /payload\.reply_to/],
      [{ from: { address: 'a@example.com\u0000' } }, /payload\.from\.address/],
      [{ from: { address: 'a@example.com', name: 'A\r\nX: y' } }, /payload\.from\.name/],
      [{ attachments: [{ filename: 'a\r\nX: y', base64: '' }] }, /payload\.attachments\[0\]\.filename/],
      [{ attachments: [{ filename: 'a', content_type: 'text/plain\r\nX: y', base64: '' }] }, /content_type/],
      [{ attachments: [{ filename: 'a', content_type: 'text', base64: '' }] }, /must be a media type/],
    ] as const) {
      await expectServiceError(send({ ...MAIL, ...mail }), 'invalid', message);
    }
  });

  it('names the member of a mail that is wrong', async () => {
    for (const [mail, message] of [
      ['', /payload: must be JSON/],
      ['[]', /payload: must be an object/],
      [{ ...MAIL, to: [] }, /payload\.to: must have at least one address/],
      [{ ...MAIL, to: 'reader@example.com' }, /payload\.to: must be an array/],
      [{ ...MAIL, to: [1] }, /payload\.to\[0\]: must be a string/],
      [{ ...MAIL, to: Array(101).fill('a@example.com') }, /payload\.to: .*at most 100/],
      [{ ...MAIL, subject: undefined }, /payload\.subject: is required/],
      [{ ...MAIL, subject: 5 }, /payload\.subject: must be a string/],
      [{ ...MAIL, text: undefined }, /payload\.text: is required/],
      [{ ...MAIL, html: { path: '/etc/passwd' } }, /payload\.html: must be a string/],
      [{ ...MAIL, from: 'a@example.com' }, /payload\.from: must be an object/],
      [{ ...MAIL, headers: {} }, /payload\.headers: is not accepted/],
      [
        { ...MAIL, attachments: [{ filename: 'a', base64: '', path: '/etc/passwd' }] },
        /payload\.attachments\[0\]\.path/,
      ],
      [{ ...MAIL, attachments: [{ filename: 'a', base64: '!' }] }, /payload\.attachments\[0\]\.base64/],
      [{ ...MAIL, attachments: [{ base64: '' }] }, /payload\.attachments\[0\]\.filename: is required/],
      [{ ...MAIL, text: 'x'.repeat(32 * 1024 * 1024 + 1) }, /payload: the mail has \d+ bytes/],
    ] as const) {
      const payload = typeof mail === 'string' ? mail : JSON.stringify(mail);
      await expectServiceError(connection.send('send', {}, payload), 'invalid', message);
    }
  });

  it('aborts a mail at its deadline', async () => {
    const abort = new AbortController();
    const sending = connection.send('send', {}, JSON.stringify(MAIL), abort.signal);
    abort.abort();
    await expectServiceError(sending, 'deadline', /aborted/);
    expect(await send(MAIL)).to.deep.include({ accepted: MAIL.to });
  });

  it('closes a connection to a mail server at once while the server does not answer', async () => {
    const at = (port: number) => ({ ...backend.config, port });
    const call = ['send', {}, JSON.stringify(MAIL)] as const;
    await expectToCloseAtOnce(emailDriver, Number(backend.config.port), at, call);
  });

  it('sends mails again after a restart of the mail server', async () => {
    await backend.stop();
    await eventually(() => expectServiceError(send(MAIL), 'unavailable', /was refused/));
    await backend.start();
    await eventually(async () => expect(await send(MAIL)).to.deep.include({ accepted: MAIL.to }));
  });
});

describe('email driver and encryption', () => {
  /** Runs with a server of its own. */
  const withServer = async (
    options: Parameters<typeof startSmtpBackend>[0],
    run: (backend: SmtpBackend) => Promise<void>,
  ) => {
    const backend = await startSmtpBackend(options);
    try {
      await run(backend);
    } finally {
      await backend.remove();
    }
  };
  const sendOver = async (config: SmtpBackend['config']) => {
    const connection = await connectTo(emailDriver, config);
    try {
      await connection.send('send', {}, JSON.stringify(MAIL));
      return await connection.test();
    } finally {
      await connection.close();
    }
  };

  it('sends a mail over implicit TLS', async () => {
    await withServer({ encryption: 'tls' }, async (backend) => {
      expect(await sendOver(backend.config)).to.equal(
        `the mail server at 127.0.0.1:${String(backend.config.port)}`,
      );
      expect((await backend.received())[0]).to.include({ secure: true, user: 'mailer' });
    });
  });

  it('sends a mail without encryption when configured so, even if the server offers it', async () => {
    await withServer({ encryption: 'starttls' }, async (backend) => {
      await sendOver({ ...backend.config, encryption: 'none' });
      expect((await backend.received())[0]).to.include({ secure: false });
    });
  });

  it('sends a mail without login when the server requires none', async () => {
    await withServer({ encryption: 'none', password: null }, async (backend) => {
      await sendOver(backend.config);
      expect((await backend.received())[0]).to.include({ user: null });
      const config = { ...backend.config, username: 'mailer', password: 'x' };
      await expectServiceError(connectTo(emailDriver, config), 'unavailable', /username or the password/);
    });
  });

  it('reports a mail server without STARTTLS or TLS', async () => {
    await withServer({ encryption: 'none' }, async ({ config }) => {
      await expectServiceError(
        connectTo(emailDriver, { ...config, encryption: 'starttls' }),
        'unavailable',
        /does not offer STARTTLS/,
      );
      await expectServiceError(
        connectTo(emailDriver, { ...config, encryption: 'tls' }),
        'unavailable',
        /does not begin with TLS/,
      );
    });
  });

  for (const encryption of ['starttls', 'tls'] as const) {
    it(`refuses a mail server with an untrusted certificate or one for another name (${encryption})`, async () => {
      await withServer({ encryption, hosts: ['localhost'] }, async ({ config }) => {
        await expectServiceError(
          connectTo(emailDriver, config),
          'unavailable',
          /certificate of 127\.0\.0\.1:\d+ was not accepted: it was issued for another host name/,
        );
        const { ssl_root_cert: _certificate, ...untrusting } = { ...config, host: 'localhost' };
        await expectServiceError(
          connectTo(emailDriver, untrusting),
          'unavailable',
          /certificate .*not accepted/,
        );
        expect(await sendOver({ ...config, host: 'localhost' })).to.include('localhost');
      });
    });
  }
});
