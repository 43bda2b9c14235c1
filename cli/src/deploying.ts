/** Deploys the code of a handler's file, with the compiler's messages about this file. */
import { CliError, type CompilerMessage } from './errors.js';
import type { Deployed } from './generated/routes.js';
import { isStillPreparing } from './preparing.js';
import type { ProjectEndpoint } from './project.js';
import { type Session, withInterruptHint } from './session.js';
import type { Source } from './sources.js';

export interface DeployOptions {
  readonly message?: string;
  readonly percent?: number;
}

/** @throws CliError whose diagnostics name the file as people do */
export async function deployHandler(
  session: Session,
  endpoint: ProjectEndpoint,
  source: Source,
  id: string,
  options: DeployOptions,
): Promise<Deployed> {
  const body = { ...source, dependencies: endpoint.dependencies as never, ...options };
  const interruptHint = `The deployment continues at the gateway; \`edge versions ${id}\` shows its outcome.`;
  for (;;)
    try {
      const call = session.api.call('POST /api/endpoints/{id}/deploy', { params: { id }, body });
      const { data, warnings } = await withInterruptHint(session, interruptHint, call);
      session.out.warnings(warnings);
      return data;
    } catch (thrown) {
      // The build waits on; nothing but another request deploys what it makes.
      if (!isStillPreparing(thrown))
        throw thrown instanceof CliError ? aboutFiles(notDeployed(thrown), endpoint, source) : thrown;
    }
}

/** The gateway has stopped to wait for the build: that goes on, the deployment does not. */
function notDeployed(error: CliError): CliError {
  const { code, details } = error.facts;
  if (code !== 'wait_timeout' || !(details as { readonly build_id?: string } | undefined)?.build_id)
    return error;
  const hint = 'Nothing was deployed. Run it again: it continues with this build.';
  return new CliError(error.message, { ...error.facts, hint }, error.exitCode);
}

/** rustc sees a handler of one file as `handler.rs`, and files of others below their root. */
function aboutFiles(error: CliError, { shown, root }: ProjectEndpoint, { entry, files }: Source): CliError {
  const { diagnostics } = error.facts;
  if (!diagnostics) return error;
  const known = new Set([entry ?? '', ...Object.keys(files ?? {})]);
  const named = (text: string) => {
    if (entry === null) return namingFile(text, shown);
    if (root === '') return text;
    return text.replace(/(^|[\s`(])([^\s`(]+)(?=:\d+)/gm, (whole, before: string, path: string) =>
      known.has(path) ? `${before}${root}/${path}` : whole,
    );
  };
  const shownAs = diagnostics.map((one) => ({ ...one, rendered: named(one.rendered) }));
  return new CliError(named(error.message), { ...error.facts, diagnostics: shownAs }, error.exitCode);
}

/** The messages, about the file as people know it. */
export function inFile(diagnostics: readonly CompilerMessage[], shown: string): CompilerMessage[] {
  return diagnostics.map((one) => ({ ...one, rendered: namingFile(one.rendered, shown) }));
}

function namingFile(text: string, shown: string): string {
  return text.replace(/(^|[\s`(])handler\.rs(?=:\d+)/gm, (_, before: string) => `${before}${shown}`);
}
