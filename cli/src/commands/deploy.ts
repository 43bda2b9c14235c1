/** `edge deploy`: the handlers of a folder go live, with the hosts and endpoints that are missing. */
import { resolve } from 'node:path';
import { targetOfGateway } from '../cargo.js';
import { type DeployOptions, deployHandler } from '../deploying.js';
import { CliError } from '../errors.js';
import { routeName } from '../names.js';
import { type ProjectEndpoint, requireProject } from '../project.js';
import type { CommonOptions, Session } from '../session.js';
import { SourceReads } from '../source-reads.js';
import { readSource, type Source } from '../sources.js';
import { ensurePlace, requireSome } from '../targets.js';
import { safeLine } from '../text.js';

export async function deploy(
  session: Session,
  { message, percent, timeout }: CommonOptions & DeployOptions & { readonly timeout?: number },
  path = '.',
): Promise<void> {
  const project = await requireProject(path);
  const { file, endpoints } = project;
  const selected = path.endsWith('.rs')
    ? endpoints.filter(({ handler }) => handler === resolve(path))
    : endpoints;
  requireSome(
    selected,
    path.endsWith('.rs')
      ? `No endpoint in ${file} has the handler ${path}`
      : `${file} has no endpoints with a handler`,
    '`edge apply` takes those of edge/*.yaml, too.',
  );
  const options = { ...(message !== undefined && { message }), ...(percent !== undefined && { percent }) };
  // Before anything is made on the gateway.
  const sources = new Map<ProjectEndpoint, Source>();
  const reads = new SourceReads(targetOfGateway(session));
  for (const endpoint of selected) sources.set(endpoint, await readSource(endpoint, file, reads));
  const results: object[] = [];
  for (const [endpoint, source] of sources) {
    const name = routeName(endpoint);
    const target = await ensurePlace(session, project, endpoint);
    session.out.progress(`${name}: compiling ${endpoint.shown}`);
    const deploying = deployHandler(session, endpoint, source, target.id, options, timeout);
    const deployed = await deploying.catch((thrown: unknown) => {
      throw withDeployed(thrown, results);
    });
    const { version, cached, status } = deployed;
    results.push({
      endpoint: name,
      id: target.id,
      created: target.isNew,
      domain_created: target.isNewDomain,
      version,
      cached,
      status,
    });
    if (session.out.json) continue;
    const share = percent === undefined ? '' : ` with ${percent} %`;
    session.out.line(
      safeLine(`${name}: version ${version} serves${share}${target.isNew ? ' (new endpoint)' : ''}`),
    );
  }
  session.out.result(results, () => undefined);
}

/** The error with what is live though the command has failed, for programs. */
function withDeployed(thrown: unknown, deployed: readonly object[]): unknown {
  if (!(thrown instanceof CliError) || deployed.length === 0) return thrown;
  const { details } = thrown.facts;
  const facts = { ...thrown.facts, details: { ...(details as object | undefined), deployed } };
  return new CliError(thrown.message, facts, thrown.exitCode);
}
