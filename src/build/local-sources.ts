/**
 * Sources of crates that are folders of this machine: `directory` (what `cargo vendor` makes) and `local-registry` in
 * cargo's configuration. Builds see them under other names.
 */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** A key and its value, a string on one line. */
const FOLDER = /^(\s*(?:directory|local-registry)\s*=\s*)(?:"([^"\\]*)"|'([^']*)')/;

/**
 * The folders that a configuration names, if they are there.
 * @param home the CARGO_HOME with the configuration: paths are relative to the folder that it is in
 */
export function localSources(config: string, home: string): string[] {
  const named = config.split('\n').flatMap((line) => folderOf(line, home) ?? []);
  return [...new Set(named)].filter((path) => existsSync(path));
}

/** The configuration with other names for these folders. */
export function withLocalSources(config: string, home: string, nameOf: (path: string) => string): string {
  const lines = config.split('\n').map((line) => {
    const path = folderOf(line, home);
    // What JSON makes of a string, TOML understands.
    return path === undefined
      ? line
      : line.replace(FOLDER, (_, key: string) => key + JSON.stringify(nameOf(path)));
  });
  return lines.join('\n');
}

function folderOf(line: string, home: string): string | undefined {
  const [, , quoted, literal] = FOLDER.exec(line) ?? [];
  const path = quoted ?? literal;
  return path === undefined ? undefined : resolve(dirname(home), path);
}
