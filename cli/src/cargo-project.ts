/** The Cargo project of a folder, by which `cargo` and editors know its handlers; and the registry that has the SDK. */
import { localPort } from './environment.js';
import { SDK } from './generated/cargo-dependencies.js';
import type { Crate } from './project.js';
import { isCode, type Session } from './session.js';
import { ownVersion } from './version.js';

/** The name of the registry in a project. */
export const REGISTRY = 'edge';
export const CARGO_CONFIG = '.cargo/config.toml';

export interface Registry {
  /** The address of its index. */
  readonly index: string;
  /** Whether the gateway is the one that commands talk to; otherwise it is where one would be started. */
  readonly isKnown: boolean;
  /** Whether cargo needs a token, too. */
  readonly needsToken: boolean;
}

/** The registry of the gateway that commands talk to. */
export function registryOf(session: Session): Registry {
  try {
    const { url, token } = session.access;
    return { index: `sparse+${url}/crates/`, isKnown: true, needsToken: token !== undefined };
  } catch (thrown) {
    if (!isCode(thrown, 'no_context')) throw thrown;
    const index = `sparse+http://127.0.0.1:${localPort()}/crates/`;
    return { index, isKnown: false, needsToken: false };
  }
}

/** What people should know of the registry. */
export function registryNotes({ index, isKnown, needsToken }: Registry): string[] {
  const notes: string[] = [];
  if (!isKnown)
    notes.push(`No gateway is configured: cargo takes the SDK from ${index}; ${CARGO_CONFIG} says so.`);
  if (needsToken)
    notes.push(
      `Cargo needs a token of the gateway, too: \`cargo login --registry ${REGISTRY}\`, or CARGO_REGISTRIES_EDGE_TOKEN.`,
    );
  return notes;
}

/** The settings of cargo. Where the registry asks for a token, cargo needs to know where tokens are. */
export function cargoConfig({ index }: Registry): string {
  return `# The gateway has its SDK as a registry of cargo.
[registries.${REGISTRY}]
index = ${JSON.stringify(index)}
credential-provider = "cargo:token"
`;
}

/** Crates by their names. */
export type Crates = Readonly<Record<string, Crate>>;

/** The crates that every handler is compiled with. */
export function givenCrates(isAsync: boolean): Crates {
  const version = ownVersion().split('.').slice(0, 2).join('.');
  return {
    [SDK]: { version, registry: REGISTRY, ...(isAsync && { features: ['async'] }) },
    serde: { version: '1', features: ['derive'] },
    serde_json: '1',
    ...(isAsync && { tokio: '1' }),
  };
}

export interface Program {
  readonly name: string;
  readonly path: string;
  /** Where it is not that of the package. */
  readonly edition?: string;
}

export interface CargoProject {
  readonly name: string;
  readonly edition: string;
  readonly programs: readonly Program[];
  readonly crates: Crates;
}

/** A Cargo.toml with a program for each handler. */
export function cargoToml(head: string, { name, edition, programs, crates }: CargoProject): string {
  return `${head}
[package]
name = ${JSON.stringify(name)}
version = "0.1.0"
edition = ${JSON.stringify(edition)}
publish = false

[workspace]
${programs.map((program) => `\n${programText(program)}`).join('')}
[dependencies]
${crateLines(crates)}`;
}

export function programText({ name, path, edition }: Program): string {
  const own = edition === undefined ? '' : `edition = ${JSON.stringify(edition)}\n`;
  return `[[bin]]\nname = ${JSON.stringify(name)}\npath = ${JSON.stringify(path)}\n${own}`;
}

/** Lines of a table of dependencies. Texts and lists of JSON are such of TOML. */
export function crateLines(crates: Crates): string {
  return Object.entries(crates)
    .map(([name, crate]) => {
      if (typeof crate === 'string') return `${name} = ${JSON.stringify(crate)}\n`;
      const members = Object.entries(crate).map(([member, value]) => `${member} = ${valueText(value)}`);
      return `${name} = { ${members.join(', ')} }\n`;
    })
    .join('');
}

function valueText(value: unknown): string {
  return Array.isArray(value)
    ? `[${value.map((one) => JSON.stringify(one)).join(', ')}]`
    : JSON.stringify(value);
}

/** A name as a package may have it. */
export function packageName(text: string): string {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^[^a-z]+/, '');
  return name === '' ? 'edge-project' : name;
}
