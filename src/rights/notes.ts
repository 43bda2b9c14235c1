/** A log for what happens before there is one: its lines are written later, by the process that this one becomes. */
import type { Note } from '../config.js';
import type { Log } from '../util/log.js';

/** A log, and the lines that it has received. */
export function noting(): { readonly log: Log; readonly notes: readonly Note[] } {
  const notes: Note[] = [];
  const at = (level: Note['level']) => (details: object, message: string) => {
    notes.push({ level, details: withErrorText(details), message });
  };
  return { notes, log: { debug: () => undefined, info: at('info'), warn: at('warn'), error: at('error') } };
}

/** An error has no members that are passed on. */
function withErrorText(details: object): object {
  const entries = Object.entries(details).map(([name, value]) =>
    value instanceof Error
      ? [name, { type: value.name, message: value.message, stack: value.stack }]
      : [name, value],
  );
  return Object.fromEntries(entries);
}
