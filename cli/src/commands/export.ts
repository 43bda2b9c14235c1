/** `edge export`: writes an installation, or a part of it, as files. */
import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { registryOf } from '../cargo-project.js';
import { UsageError } from '../errors.js';
import { exportedCargo } from '../exported-cargo.js';
import { writeFiles } from '../files.js';
import { PROJECT_FILE } from '../project.js';
import type { CommonOptions, Session } from '../session.js';
import type { FileContent } from '../sources.js';
import { safeLine } from '../text.js';

interface ExportOptions extends CommonOptions {
  readonly output?: string;
  readonly domain?: string;
  readonly stack?: string;
  readonly force?: boolean;
  readonly openapi?: boolean;
  readonly collection?: string;
}

type Files = Readonly<Record<string, FileContent>>;

export async function exportInstallation(session: Session, options: ExportOptions): Promise<void> {
  const { openapi, domain, collection, stack, output, force } = options;
  if (!openapi) {
    if (collection !== undefined) throw new UsageError('--collection needs --openapi');
    return exportFiles(session, options);
  }
  if (stack !== undefined) throw new UsageError('Give one of --openapi and --stack');
  if (domain === undefined) throw new UsageError('Of which host?', 'Give --domain HOST.');
  const { exportOpenApi } = await import('./export-openapi.js');
  return exportOpenApi(session, { domain, collection, output, force: force === true });
}

async function exportFiles(session: Session, { output, domain, stack, force }: ExportOptions): Promise<void> {
  const query = { ...(domain !== undefined && { domain }), ...(stack !== undefined && { stack }) };
  const { data, warnings } = await session.api.call('GET /api/export', { query });
  session.out.warnings(warnings);
  const { files } = data as { files: Files };
  if (output === undefined) return print(session, files);
  const cargo = await exportedCargo(basename(resolve(output)), files, registryOf(session));
  // A Cargo.toml that is there is its author's.
  const missing = Object.entries(cargo.files).filter(([path]) => !existsSync(join(output, path)));
  const paths = writeFiles(output, { ...files, ...Object.fromEntries(missing) }, force === true);
  session.out.warnings(cargo.notes);
  session.out.result({ folder: resolve(output), files: paths }, () => {
    for (const path of paths) session.out.line(safeLine(join(output, path)));
  });
}

/** Prints the only file; of several, people get the one that describes the others. */
function print({ out }: Session, files: Files): void {
  out.result({ files }, () => out.raw(String(files[PROJECT_FILE] ?? '')));
  const others = Object.keys(files).length - 1;
  if (others > 0 && !out.json)
    out.note(`Sources are ${others} files of their own: -o DIR writes all of them.`);
}
