/** Questions at a terminal, and values that must not be seen: from a prompt without echo, or from stdin. */
import { InterruptError, UsageError } from './errors.js';
import type { Session } from './session.js';

const MAX_BYTES = 1024 * 1024;
const CTRL_C = '\u0003';
const CTRL_D = '\u0004';

/** What a destructive command asks before. */
export async function confirm(
  session: Session,
  question: string,
  isSure: boolean | undefined,
): Promise<void> {
  if (isSure) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError(`${question} Nothing was done: there is no terminal to ask`, 'Add --yes.');
  process.stderr.write(`${question} [y/N] `);
  if (!/^y(es)?$/i.test((await line(session)).trim())) throw new UsageError('Nothing was done');
}

/** A line that is typed: the terminal shows and edits it. */
function line({ signal }: Session): Promise<string> {
  const { stdin } = process;
  stdin.setEncoding('utf8');
  return new Promise((resolve, reject) => {
    const finish = (end: () => void) => {
      stdin.off('data', read).off('end', atEnd).pause();
      signal.removeEventListener('abort', interrupt);
      end();
    };
    const read = (text: string) => finish(() => resolve(text));
    const atEnd = () => finish(() => resolve(''));
    const interrupt = () => finish(() => reject(new InterruptError()));
    stdin.on('data', read).on('end', atEnd);
    signal.addEventListener('abort', interrupt);
  });
}

/** A secret: typed without being shown, or all of stdin without the line break at its end. */
export async function secretFrom(session: Session, what: string): Promise<string> {
  const text = process.stdin.isTTY ? await typed(session, what) : await piped(session);
  if (text === '')
    throw new UsageError(`No ${what} was given`, `Type it, or send it to stdin; it is never an argument.`);
  return text;
}

async function piped(session: Session): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const stop = () => process.stdin.destroy();
  session.signal.addEventListener('abort', stop);
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BYTES) throw new UsageError(`stdin has more than ${MAX_BYTES} bytes`);
  }
  session.signal.removeEventListener('abort', stop);
  if (session.signal.aborted) throw new InterruptError();
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '');
}

function typed(session: Session, what: string): Promise<string> {
  const { stdin, stderr } = process;
  // First of all: what is typed before would be shown.
  stdin.setRawMode(true);
  stderr.write(`${what}: `);
  stdin.resume();
  stdin.setEncoding('utf8');
  return new Promise((resolve, reject) => {
    let text = '';
    const done = (finish: () => void) => {
      stdin.off('data', read);
      session.signal.removeEventListener('abort', interrupt);
      stdin.setRawMode(false);
      stdin.pause();
      stderr.write('\n');
      finish();
    };
    const interrupt = () => done(() => reject(new InterruptError()));
    const read = (typedNow: string) => {
      for (const character of typedNow) {
        if (character === CTRL_C) return interrupt();
        if (character === '\r' || character === '\n' || character === CTRL_D)
          return done(() => resolve(text));
        if (character === '\u007f' || character === '\b') text = text.slice(0, -1);
        else text += character;
      }
    };
    session.signal.addEventListener('abort', interrupt);
    stdin.on('data', read);
  });
}
