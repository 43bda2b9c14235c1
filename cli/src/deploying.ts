/** Deploys the code of a handler's file, with the compiler's messages about this file. */
import { randomUUID } from 'node:crypto';
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

/**
 * @param timeoutSeconds waits no longer; otherwise as long as the gateway prepares something
 * @throws CliError whose diagnostics name the file as people do
 */
export async function deployHandler(
  session: Session,
  endpoint: ProjectEndpoint,
  source: Source,
  id: string,
  options: DeployOptions,
  timeoutSeconds?: number,
): Promise<Deployed> {
  const deadline = timeoutSeconds === undefined ? undefined : AbortSignal.timeout(timeoutSeconds * 1000);
  const api = deadline
    ? session.apiAt(session.access, AbortSignal.any([session.signal, deadline]))
    : session.api;
  const body = { ...source, ...options } as never;
  const interruptHint = `The deployment continues at the gateway; \`edge versions ${id}\` shows its outcome.`;
  // All tries have the same: the build that the first one has asked for is told from others by it.
  const requestId = randomUUID();
  const input = { params: { id }, body, headers: { 'x-request-id': requestId } };
  const deploy = async () => {
    for (;;)
      try {
        return await api.call('POST /api/endpoints/{id}/deploy', input);
      } catch (thrown) {
        if (deadline?.aborted && !session.signal.aborted)
          throw new CliError(`${endpoint.shown} was not deployed within ${timeoutSeconds} s (--timeout)`, {
            code: 'timeout',
            hint: interruptHint,
          });
        // The build waits on; nothing but another request deploys what it makes.
        if (!isStillPreparing(thrown))
          throw thrown instanceof CliError ? aboutFiles(notDeployed(thrown), endpoint, source) : thrown;
      }
  };
  const { data, warnings } = await withInterruptHint(session, interruptHint, deploy(), { requestId });
  session.out.warnings(warnings);
  return data;
}

/** The gateway has stopped to wait for the build: that goes on, the deployment does not. */
function notDeployed(error: CliError): CliError {
  const { code, details } = error.facts;
  if (code !== 'wait_timeout' || !(details as { readonly build_id?: string } | undefined)?.build_id)
    return error;
  const hint = 'Nothing was deployed. Run it again: it continues with this build.';
  return new CliError(error.message, { ...error.facts, hint }, error.exitCode);
}

function aboutFiles(error: CliError, { shown, root }: ProjectEndpoint, { entry, files }: Source): CliError {
  const { diagnostics } = error.facts;
  if (!diagnostics) return error;
  const source = {
    ...{ shown, root, isOneFile: entry === null },
    has: (path: string) => path === entry || Object.hasOwn(files ?? {}, path),
  };
  const facts = { ...error.facts, diagnostics: diagnosticsAbout(diagnostics, source) };
  return new CliError(textAbout(error.message, source), facts, error.exitCode);
}

/** What the compiler was given. */
export interface CompiledSource {
  /** The path of the code, as people write it. */
  readonly shown: string;
  /** The folder that paths of its files are relative to, itself relative to that of edge.yaml. */
  readonly root: string;
  /** rustc sees a source of one file as `handler.rs`, and those of several with their paths. */
  readonly isOneFile: boolean;
  /** Whether a file is there, at this path in the root. */
  readonly has: (path: string) => boolean;
}

/** Messages of the compiler, about files as people know them. */
export function diagnosticsAbout(
  diagnostics: readonly CompilerMessage[],
  source: CompiledSource,
): CompilerMessage[] {
  return diagnostics.map((one) => ({ ...one, rendered: textAbout(one.rendered, source) }));
}

/** `--> src/hello.rs:3:5`, where paths may have spaces, and `src/hello.rs:3` anywhere else. */
const PLACE = /^([ \t]*(?:-->|:::) )(.+?)(?=:\d+:\d+$)|(^|[\s`(])([^\s`(:]+)(?=:\d)/gm;

/** A text with places in the source, about files as people know them. */
export function textAbout(text: string, { shown, root, isOneFile, has }: CompiledSource): string {
  const known = (path: string) => {
    if (isOneFile) return path === 'handler.rs' ? shown : path;
    return root !== '' && has(path) ? `${root}/${path}` : path;
  };
  return text.replace(PLACE, (_, arrow: string | undefined, place: string, before: string, word: string) =>
    arrow === undefined ? before + known(word) : arrow + known(place),
  );
}
