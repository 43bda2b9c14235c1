/** The types of the members of a JSON body that may only be some texts or integers. */
import type { Member } from '../openapi/document.js';
import type { RustConstants } from './rust-constants.js';
import { pascalCase } from './rust-names.js';
import { stringLiteral, wrap } from './rust-text.js';

/** More variants, of one enum or all, would take long to compile: further texts are checked against a list. */
const MAX_VARIANTS = 40;
const MAX_TOTAL_VARIANTS = 400;
/** So many of the numbers that are allowed are named in an error. */
const NAMED_NUMBERS = 20;
/** Most characters in a line of a match arm, which is indented by three levels. */
const ARM_WIDTH = 88;

/** The enums of one body. */
export class RustEnums {
  readonly #constants: RustConstants;
  readonly #names = new Set(['Body']);
  readonly #definitions: string[][] = [];
  #variants = 0;

  constructor(constants: RustConstants) {
    this.#constants = constants;
  }

  get definitions(): readonly (readonly string[])[] {
    return this.#definitions;
  }

  /** The type of a member, or of its items; undefined when it may be any. */
  typeOf({ name, type, allowed }: Member): string | undefined {
    if (allowed === undefined || !(type === allowed.type || type === 'array')) return undefined;
    if (!this.#constants.reserve(allowed.values.map(String))) return undefined;
    // The prefix keeps it apart from all names of the SDK.
    const rustName = unique(`Body${pascalCase(name)}`, this.#names);
    this.#definitions.push(
      allowed.type === 'integer'
        ? checkedInteger(rustName, allowed.values)
        : this.#textType(rustName, name, allowed.values),
    );
    return rustName;
  }

  #textType(rustName: string, name: string, allowed: readonly string[]): string[] {
    return this.#canBeEnum(allowed.length)
      ? enumOf(rustName, allowed)
      : checkedText(rustName, this.#constants.define(name, allowed));
  }

  #canBeEnum(variants: number): boolean {
    if (variants > MAX_VARIANTS || this.#variants + variants > MAX_TOTAL_VARIANTS) return false;
    this.#variants += variants;
    return true;
  }
}

function enumOf(name: string, texts: readonly string[]): string[] {
  const usedNames = new Set<string>();
  return [
    '#[derive(Deserialize, Serialize)]',
    `enum ${name} {`,
    ...texts.flatMap((text) => {
      const variant = unique(variantName(text), usedNames);
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
  const body = [`rust_edge_gateway_sdk::one_of(text, &${constant}).map(Self)`];
  return [`/// One of \`${constant}\`.`, ...checkedType(name, 'String', 'text', body)];
}

/** An integer that is checked when it is read. */
function checkedInteger(name: string, numbers: readonly number[]): string[] {
  const named = numbers.slice(0, NAMED_NUMBERS).join(', ');
  const more = numbers.length - NAMED_NUMBERS;
  const which = numbers.length === 1 ? named : `one of ${named}${more > 0 ? ` and ${more} more` : ''}`;
  return checkedType(name, 'i64', 'number', [
    'match number {',
    ...wrap(pattern(numbers), ARM_WIDTH).map((line) => `    ${line}`),
    `    _ => Err(format!("{number} is not ${which}")),`,
    '}',
  ]);
}

/** A type around a checked value. @param body of the function that checks it */
function checkedType(name: string, inner: string, value: string, body: readonly string[]): string[] {
  return [
    '#[derive(Deserialize, Serialize)]',
    `#[serde(try_from = "${inner}")]`,
    `struct ${name}(${inner});`,
    '',
    `impl TryFrom<${inner}> for ${name} {`,
    '    type Error = String;',
    '',
    `    fn try_from(${value}: ${inner}) -> Result<Self, String> {`,
    ...body.map((line) => `        ${line}`),
    '    }',
    '}',
  ];
}

/** A match arm, word by word. */
function pattern(numbers: readonly number[]): string[] {
  return [
    ...numbers.flatMap((number, at) => (at === 0 ? [`${number}`] : ['|', `${number}`])),
    '=> Ok(Self(number)),',
  ];
}

function variantName(text: string): string {
  const name = pascalCase(text);
  return name === '' || name === 'Self' || /^\d/.test(name) ? `Value${name}` : name;
}

function unique(base: string, usedNames: Set<string>): string {
  let name = base;
  for (let number = 2; usedNames.has(name); number++) name = `${base}${number}`;
  usedNames.add(name);
  return name;
}
