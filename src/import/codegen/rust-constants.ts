/** Lists of strings in the source of a handler: short ones where they are used, long ones as constants. */
import { RustNames } from './rust-names.js';
import { stringLiteral, wrap } from './rust-text.js';

/** Longer lists become constants. */
const MAX_INLINE_LENGTH = 60;

export class RustConstants {
  readonly #names = new RustNames('values');
  readonly #definitions: string[][] = [];

  /** The definitions of the constants that are used. */
  get definitions(): readonly (readonly string[])[] {
    return this.#definitions;
  }

  /**
   * An expression of type `&[&str]`.
   * @param name what the texts belong to
   */
  slice(name: string, texts: readonly string[]): string {
    const inline = `&[${texts.map(stringLiteral).join(', ')}]`;
    return inline.length <= MAX_INLINE_LENGTH ? inline : `&${this.define(name, texts)}`;
  }

  /** The name of a new constant with these texts. */
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
