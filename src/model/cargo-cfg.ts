/**
 * Which tables `[target.'...']` of a Cargo.toml are for a target: https://doc.rust-lang.org/reference/conditional-compilation.html
 * The command line has a copy of this file, which therefore imports nothing of ours.
 */

/** The target that a machine compiles handlers for, unless it says so itself. @param arch as Node has it */
export function tripleOf(arch: string): string {
  return `${arch === 'arm64' ? 'aarch64' : 'x86_64'}-unknown-linux-gnu`;
}

/**
 * @param condition a target triple, or `cfg(...)`
 * @returns why it is neither, when it is not
 */
export function isForTarget(condition: string, triple: string): boolean | { readonly problem: string } {
  const inner = /^\s*cfg\s*\(([\s\S]*)\)\s*$/.exec(condition)?.[1];
  if (inner === undefined) return condition === triple;
  const tokens = tokensOf(inner);
  if (!tokens) return { problem: 'is no condition' };
  const reader = new ConditionReader(tokens, optionsOf(triple));
  const value = reader.condition();
  return value === undefined || !reader.isAtEnd ? { problem: 'is no condition' } : value;
}

/** Names that are set, and `name="value"`, as `rustc --print cfg` shows them for Linux on x86_64 and aarch64. */
function optionsOf(triple: string): ReadonlySet<string> {
  const [arch = '', vendor = '', os = '', env = ''] = triple.split('-');
  const isArm = arch === 'aarch64';
  const features = isArm ? ['neon'] : ['fxsr', 'sse', 'sse2'];
  const atomics = ['8', '16', '32', '64', ...(isArm ? ['128'] : []), 'ptr'];
  return new Set([
    ...['unix', 'debug_assertions', 'true', 'panic="unwind"', 'target_family="unix"', 'target_abi=""'],
    ...[`target_arch="${arch}"`, `target_vendor="${vendor}"`, `target_os="${os}"`, `target_env="${env}"`],
    ...['target_endian="little"', 'target_pointer_width="64"'],
    ...features.map((name) => `target_feature="${name}"`),
    ...atomics.map((width) => `target_has_atomic="${width}"`),
  ]);
}

const TOKEN = /\s*(?:(r#)?([A-Za-z_]\w*)|("(?:[^"\\]|\\.)*")|([(),=]))/y;

function tokensOf(text: string): string[] | undefined {
  const tokens: string[] = [];
  const end = text.trimEnd().length;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < end) {
    const found = TOKEN.exec(text);
    if (!found) return undefined;
    tokens.push(found[2] ?? found[3] ?? found[4] ?? '');
  }
  return tokens;
}

/** Conditions are nested in each other no deeper. */
const MAX_DEPTH = 50;

/** Reads a condition; what it returns is undefined where there is none. */
class ConditionReader {
  #at = 0;

  constructor(
    private readonly tokens: readonly string[],
    private readonly options: ReadonlySet<string>,
  ) {}

  get isAtEnd(): boolean {
    return this.#at === this.tokens.length;
  }

  condition(depth = 0): boolean | undefined {
    const name = this.tokens[this.#at];
    if (name === undefined || !/^\w/.test(name) || depth > MAX_DEPTH) return undefined;
    this.#at++;
    if (this.#takes('=')) {
      const value = this.tokens[this.#at++];
      return value?.startsWith('"') ? this.options.has(`${name}=${value}`) : undefined;
    }
    if (!['all', 'any', 'not'].includes(name) || !this.#takes('(')) return this.options.has(name);
    const values = this.#list(depth + 1);
    if (!values) return undefined;
    if (name === 'all') return values.every(Boolean);
    if (name === 'any') return values.some(Boolean);
    return values.length === 1 ? !values[0] : undefined;
  }

  #list(depth: number): boolean[] | undefined {
    const values: boolean[] = [];
    for (;;) {
      if (this.#takes(')')) return values;
      const value = this.condition(depth);
      if (value === undefined) return undefined;
      values.push(value);
      if (this.#takes(')')) return values;
      if (!this.#takes(',')) return undefined;
    }
  }

  #takes(token: string): boolean {
    if (this.tokens[this.#at] !== token) return false;
    this.#at++;
    return true;
  }
}
