/** Lists of strings in the source of a handler: short ones where they are used, long ones as constants. */
import { RustNames } from './rust-names.js';
import { stringLiteral, wrap } from './rust-text.js';

/** Longer lists become constants. */
const MAX_INLINE_LENGTH = 60;
/** Generated source has to stay editable by hand: it has no longer lists and texts, and no more text in all. */
const MAX_TEXTS = 1_000;
const MAX_TEXT_LENGTH = 256;
const MAX_TOTAL_LENGTH = 50_000;

export class RustConstants {
  readonly #names = new RustNames('values');
  readonly #definitions: string[][] = [];
  #remaining = MAX_TOTAL_LENGTH;

  /** The definitions of the constants that are used. */
  get definitions(): readonly (readonly string[])[] {
    return this.#definitions;
  }

  /** Whether there is room for a list; if so, it is taken, and the list can be written once. */
  reserve(texts: readonly string[]): boolean {
    if (texts.length > MAX_TEXTS || texts.some((text) => text.length > MAX_TEXT_LENGTH)) return false;
    const length = texts.reduce((sum, text) => sum + text.length, 0);
    if (length > this.#remaining) return false;
    this.#remaining -= length;
    return true;
  }

  /**
   * An expression of type `&[&str]`, for a list that has been reserved.
   * @param name what the texts belong to
   */
  slice(name: string, texts: readonly string[]): string {
    const inline = `&[${texts.map(stringLiteral).join(', ')}]`;
    return inline.length <= MAX_INLINE_LENGTH ? inline : `&${this.define(name, texts)}`;
  }

  /** The name of a new constant with these texts, which have been reserved. */
  define(name: string, texts: readonly string[]): string {
    const constant = this.#names.unique(name).toUpperCase();
    this.#definitions.push([
      `const ${constant}: [&str; ${texts.length}] = [`,
      ...wrap(texts.map((text) => `${stringLiteral(text)},`)).map((line) => `    ${line}`),
      '];',
    ]);
    return constant;
  }
}
