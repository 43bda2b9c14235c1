/** Short texts in one form: methods, states, times, numbers. */
import { useEffect, useState } from 'preact/hooks';
import { once } from './once.js';

export function Method({ name }: { readonly name: string }) {
  return <span class={`method ${name}`}>{name}</span>;
}

export type Tone = 'ok' | 'warn' | 'bad' | 'idle';

export function Badge({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  return (
    <span class={`badge ${tone}`}>
      <span>{children}</span>
    </span>
  );
}

const FULL = once(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }));
const RELATIVE = once(() => new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' }));
const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];
const DAY_MS = 86_400_000;
const AGE_REFRESH_MS = 10_000;

/** How long ago something was; the time in the reader's zone is shown when one points at it. */
export function Ago({ at }: { readonly at: string }) {
  const [, again] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => again((count) => count + 1), AGE_REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  const date = new Date(at);
  const seconds = (date.getTime() - Date.now()) / 1_000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1];
  return (
    <time dateTime={at} title={FULL().format(date)}>
      {RELATIVE().format(unit === 'day' ? daysUntil(date) : Math.trunc(seconds / size), unit)}
    </time>
  );
}

/** Days of the calendar where the reader is: after tomorrow comes another day, however early in it something is. */
function daysUntil(date: Date): number {
  const dayOf = (one: Date) => Date.UTC(one.getFullYear(), one.getMonth(), one.getDate()) / DAY_MS;
  return dayOf(date) - dayOf(new Date());
}

/** A time in the reader's zone. */
export function At({ at }: { readonly at: string }) {
  return <time dateTime={at}>{FULL().format(new Date(at))}</time>;
}

const COUNT = once(() => new Intl.NumberFormat());
export const count = (value: number) => COUNT().format(value);

/** A size in the units of 1,024 bytes. */
export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, value < 1 ? 0 : Math.floor(Math.log2(value) / 10));
  const shown = value / 1_024 ** power;
  return `${shown >= 100 || power === 0 ? Math.round(shown) : shown.toFixed(1)} ${units[power]}`;
}

/** A duration that was measured in milliseconds. */
export function duration(ms: number): string {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1_000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min`;
}
