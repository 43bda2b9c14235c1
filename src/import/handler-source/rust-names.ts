/** Names for Rust variables and fields, made of the names in a document, which may be any text. */

/** Strict and reserved keywords of all editions. */
const KEYWORDS = new Set(
  (
    'abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if ' +
    'impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true try ' +
    'type typeof union unsafe unsized use virtual where while yield'
  ).split(' '),
);

/** Longer names are cut. */
const MAX_LENGTH = 60;

/** The names of one scope: each is given once. */
export class RustNames {
  readonly #taken: Set<string>;

  /** @param taken names that the scope has already */
  constructor(
    private readonly fallback: string,
    taken: Iterable<string> = [],
  ) {
    this.#taken = new Set(taken);
  }

  /**
   * A name in snake_case that is not taken, as close to the text as possible: `petId` is `pet_id`, a second one
   * `pet_id_2`, `type` is `type_`, `2fa` is `field_2fa` when the fallback is `field`, and so is `field` a text without
   * any letter of ASCII.
   */
  give(text: string): string {
    const wanted = this.#identifier(text);
    let name = wanted;
    for (let number = 2; this.#taken.has(name); number++) name = `${wanted.replace(/_$/, '')}_${number}`;
    this.#taken.add(name);
    return name;
  }

  #identifier(text: string): string {
    const name = snakeCase(text);
    if (name === '') return this.fallback;
    if (/^\d/.test(name)) return `${this.fallback}_${name}`;
    return KEYWORDS.has(name) ? `${name}_` : name;
  }
}

/** `petId` → `pet_id`, `HTTPStatus` → `http_status`, `X-Rate-Limit` → `x_rate_limit`; other characters separate words. */
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
