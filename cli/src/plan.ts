/** A plan of an apply, as people read it. */
import type { Plan } from './generated/routes.js';
import type { Output } from './output.js';
import { type Colour, safeLine, safeText } from './text.js';

type Change = Plan['changes'][number];
type Field = Change['fields'][number];

const SIGNS: Readonly<Record<Change['action'], readonly [sign: string, colour: Colour]>> = {
  create: ['+', 'green'],
  update: ['~', 'yellow'],
  delete: ['-', 'red'],
};
/** Longer values are cut off; `--json` has all. */
const SHOWN_CHARACTERS = 200;

/** Prints each object that changes, and each field of those that exist. */
export function showPlan(out: Output, { changes }: Plan): void {
  for (const { action, kind, name, fields } of changes) {
    const [sign, colour] = SIGNS[action];
    out.line(out.paint(colour, `${sign} ${kind} ${safeLine(name)}`));
    if (action === 'update') for (const field of fields) showField(out, field);
    if (action === 'create') for (const field of fields) showNew(out, field);
  }
}

function showField(out: Output, { path, before, after, diff }: Field): void {
  if (diff === undefined) {
    out.line(`    ${safeLine(path)}: ${shownValue(before)} -> ${shownValue(after)}`);
    return;
  }
  out.line(`    ${safeLine(path)}:`);
  for (const line of safeText(diff).trimEnd().split('\n')) {
    const colour = line.startsWith('+') ? 'green' : line.startsWith('-') ? 'red' : undefined;
    out.line(`      ${colour ? out.paint(colour, line) : line}`);
  }
}

/** Shows a field of a new object, unless it is empty or code, which is in a file. */
function showNew(out: Output, { path, after }: Field): void {
  const isNothing =
    after === null || after === undefined || JSON.stringify(after) === '{}' || JSON.stringify(after) === '[]';
  if (!isNothing && path !== 'code') out.line(`    ${safeLine(path)}: ${shownValue(after)}`);
}

function shownValue(value: unknown): string {
  if (value === undefined || value === null) return 'none';
  const text = safeLine(JSON.stringify(value));
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

/** How many objects change, in a sentence. */
export function summaryOf({ stack, changes }: Plan): string {
  if (changes.length === 0) return `Nothing to change: the installation is what the stack "${stack}" says.`;
  const count = (action: Change['action']) => changes.filter((change) => change.action === action).length;
  return `Stack "${safeLine(stack)}": ${count('create')} to create, ${count('update')} to change, ${count('delete')} to remove.`;
}
