/**
 * Sources of crates in folders of this machine: `directory` (made by `cargo vendor`) and `local-registry` in the
 * configuration of cargo. Builds see them under other paths.
 */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** A key and its value, a string on one line. */
const FOLDER = /^(\s*(?:directory|local-registry)\s*=\s*)(?:"([^"\\]*)"|'([^']*)')/;

/**
 * The existing folders that a configuration names.
 * @param home the CARGO_HOME with the configuration: paths are relative to the folder that contains it
 */
export function localSources(config: string, home: string): string[] {
  const named = config.split('\n').flatMap((line) => folderOf(line, home) ?? []);
  return [...new Set(named)].filter((path) => existsSync(path));
}

/** The configuration with these folders replaced. */
export function withLocalSources(config: string, home: string, nameOf: (path: string) => string): string {
  const lines = config.split('\n').map((line) => {
    const path = folderOf(line, home);
    // A JSON string is a valid TOML string.
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
