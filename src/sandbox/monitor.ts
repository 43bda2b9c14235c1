/** Reports of the launcher as the monitor of a program in namespaces. */
import { constants } from 'node:os';
import type { Readable } from 'node:stream';

/** Exit status of a program: a code or a signal. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface MonitorReports {
  /** Resolves with the program's process id on this machine, or undefined when the monitor ended before the start. */
  readonly pid: Promise<number | undefined>;
  /** Resolves when the monitor has closed the stream; undefined when it has not reported an exit status. */
  readonly end: Promise<ProgramEnd | undefined>;
  knownPid(): number | undefined;
}

/** Reads the reports: one line of JSON at the start of the program and one at its end. */
export function readReports(stream: Readable): MonitorReports {
  let text = '';
  let known: number | undefined;
  let knowPid: (pid: number | undefined) => void = () => undefined;
  const pid = new Promise<number | undefined>((resolve) => {
    knowPid = resolve;
  });
  const value = (name: string) => {
    const number = new RegExp(`"${name}": *(\\d+)`).exec(text)?.[1];
    return number === undefined ? undefined : Number(number);
  };
  stream.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    known ??= value('child-pid');
    if (known !== undefined) knowPid(known);
  });
  const end = new Promise<ProgramEnd | undefined>((resolve) => {
    stream.once('error', () => undefined); // 'close' follows
    stream.once('close', () => {
      knowPid(known);
      const exitCode = value('exit-code');
      resolve(exitCode === undefined ? undefined : endOf(exitCode));
    });
  });
  return { pid, end, knownPid: () => known };
}

/** A signal is reported as 128 plus its number, as in shells. */
function endOf(exitCode: number): ProgramEnd {
  const signal = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128);
  return signal ? { code: null, signal: signal[0] as NodeJS.Signals } : { code: exitCode, signal: null };
}
