/** Rust identifiers for the names in a document, which are untrusted text. */

/** Strict and reserved keywords of all editions. */
const KEYWORDS = new Set(
  (
    'abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if ' +
    'impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true try ' +
    'type typeof union unsafe unsized use virtual where while yield'
  ).split(' '),
);

/** Longer identifiers are truncated. */
const MAX_LENGTH = 60;

/** The identifiers of one scope. */
export class RustNames {
  readonly #fallback: string;
  readonly #used: Set<string>;

  /**
   * @param fallback identifier of a text without ASCII letters and digits
   * @param existing identifiers that exist in the scope already
   */
  constructor(fallback: string, existing: Iterable<string> = []) {
    this.#fallback = fallback;
    this.#used = new Set(existing);
  }

  /**
   * A new snake_case identifier for this text: `petId` becomes `pet_id`, a second one `pet_id_2`, `type` becomes
   * `type_`, and `2fa` becomes `field_2fa` if the fallback is `field`.
   */
  unique(text: string): string {
    const base = this.#identifier(text);
    let name = base;
    for (let number = 2; this.#used.has(name); number++) name = `${base.replace(/_$/, '')}_${number}`;
    this.#used.add(name);
    return name;
  }

  #identifier(text: string): string {
    const name = snakeCase(text);
    if (name === '') return this.#fallback;
    if (/^\d/.test(name)) return `${this.#fallback}_${name}`;
    return KEYWORDS.has(name) ? `${name}_` : name;
  }
}

/** `in stock` → `InStock`; empty when the text has no ASCII letters and digits. */
export function pascalCase(text: string): string {
  const words = snakeCase(text).split('_');
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

/**
 * `petId` → `pet_id`, `HTTPStatus` → `http_status`, `X-Rate-Limit` → `x_rate_limit`; other characters separate words.
 */
function snakeCase(text: string): string {
  const words = text
    .slice(0, 4 * MAX_LENGTH)
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+/, '');
  return words.slice(0, MAX_LENGTH).replace(/_+$/, '');
}
