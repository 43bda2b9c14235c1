/** Adds to errors about missing crates the field of the endpoint in which crates are listed. */
import type { Diagnostic } from '../model/diagnostic.js';

/** The label of E0432 and E0433, and the message of E0463; the wording depends on the version of rustc. */
const MISSING =
  /^(?:use of (?:unresolved module or unlinked crate|undeclared crate or module)|no external crate|can't find crate for) `(\w+)`/;
const CODES = ['E0432', 'E0433', 'E0463'];
/** The advice of rustc, which applies only to projects with a Cargo.toml. */
const RUSTC_HELP =
  /^( *= help: )(?:you might be missing a crate named|use `cargo add|if you wanted to use a crate named|consider adding).*$/gm;

/** The same diagnostic; for a missing crate with a line, and a suggestion without edits, that say where to add it. */
export function withCrateHelp(diagnostic: Diagnostic): Diagnostic {
  const { code, labels, message, rendered, suggestions } = diagnostic;
  if (code === null || !CODES.includes(code)) return diagnostic;
  const texts = [...labels.filter(({ is_primary }) => is_primary).map(({ text }) => text ?? ''), message];
  const name = texts.map((text) => MISSING.exec(text)?.[1]).find((one) => one !== undefined);
  if (name === undefined) return diagnostic;
  const help = `if \`${name}\` is a crate, add it to the endpoint's "dependencies": {"${name}": "<version>"}`;
  const kept = rendered.replace(RUSTC_HELP, '').trimEnd();
  const margin = `${/^ *(?=-->)/m.exec(kept)?.[0] ?? ''} `;
  const gap = kept.endsWith('|') ? '' : `${margin}|\n`;
  return {
    ...diagnostic,
    suggestions: [{ message: help, applicability: null, edits: [] }, ...suggestions],
    rendered: `${kept}\n${gap}${margin}= help: ${help}\n`,
  };
}
