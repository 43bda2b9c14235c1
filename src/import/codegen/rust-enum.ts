/** The types of the members of a JSON body that may only be some texts. */
import type { Member } from '../openapi/document.js';
import type { RustConstants } from './rust-constants.js';
import { pascalCase } from './rust-names.js';
import { stringLiteral } from './rust-text.js';

/** A longer enum would take longer to compile than it is worth: its values are checked against a list. */
const MAX_VARIANTS = 40;
/** Generated source has to stay editable by hand: with more or longer texts, values are not checked. */
const MAX_TEXTS = 1_000;
const MAX_TEXT_LENGTH = 256;

/** The texts that a value may be, if they can be checked. */
export function checkable(allowed: readonly string[] | undefined): readonly string[] | undefined {
  const isSmall = allowed !== undefined && allowed.length > 0 && allowed.length <= MAX_TEXTS;
  return isSmall && allowed.every((text) => text.length <= MAX_TEXT_LENGTH) ? allowed : undefined;
}

/** The enums of one body. */
export class RustEnums {
  readonly #constants: RustConstants;
  readonly #names = new Set(['Body']);
  readonly #definitions: string[][] = [];

  constructor(constants: RustConstants) {
    this.#constants = constants;
  }

  get definitions(): readonly (readonly string[])[] {
    return this.#definitions;
  }

  /** The type of a member, or of its items; undefined when it may be any text. */
  typeOf({ name, type, allowed }: Member): string | undefined {
    const isText = type === 'string' || type === 'array';
    const texts = isText ? checkable(allowed) : undefined;
    if (texts === undefined) return undefined;
    // The prefix keeps it apart from all names of the SDK.
    const rustName = unique(`Body${pascalCase(name)}`, this.#names);
    this.#definitions.push(
      texts.length <= MAX_VARIANTS
        ? enumOf(rustName, texts)
        : checkedText(rustName, this.#constants.define(name, texts)),
    );
    return rustName;
  }
}

function enumOf(name: string, texts: readonly string[]): string[] {
  const taken = new Set<string>();
  return [
    '#[derive(Deserialize, Serialize)]',
    `enum ${name} {`,
    ...texts.flatMap((text) => {
      const variant = unique(variantName(text), taken);
      return [
        ...(variant === text ? [] : [`    #[serde(rename = ${stringLiteral(text)})]`]),
        `    ${variant},`,
      ];
    }),
    '}',
  ];
}

/** A text that is checked when it is read. */
function checkedText(name: string, constant: string): string[] {
  return [
    `/// One of \`${constant}\`.`,
    '#[derive(Deserialize, Serialize)]',
    '#[serde(try_from = "String")]',
    `struct ${name}(String);`,
    '',
    `impl TryFrom<String> for ${name} {`,
    '    type Error = String;',
    '',
    '    fn try_from(text: String) -> Result<Self, String> {',
    `        rust_edge_gateway_sdk::one_of(text, &${constant}).map(Self)`,
    '    }',
    '}',
  ];
}

function variantName(text: string): string {
  const name = pascalCase(text);
  return name === '' || name === 'Self' || /^\d/.test(name) ? `Value${name}` : name;
}

function unique(base: string, taken: Set<string>): string {
  let name = base;
  for (let number = 2; taken.has(name); number++) name = `${base}${number}`;
  taken.add(name);
  return name;
}
