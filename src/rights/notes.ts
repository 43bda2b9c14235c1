/** A log for what happens before there is one: its lines are written later, by the process that this one becomes. */
import type { Note } from '../config.js';
import { withErrorText } from '../util/error-text.js';
import type { Log } from '../util/log.js';

/** A log, and the lines that it has received. */
export function noting(): { readonly log: Log; readonly notes: readonly Note[] } {
  const notes: Note[] = [];
  const at = (level: Note['level']) => (details: object, message: string) => {
    notes.push({ level, details: withErrorText(details), message });
  };
  return { notes, log: { debug: () => undefined, info: at('info'), warn: at('warn'), error: at('error') } };
}
