/** `edge deploy`: the handlers of a folder go live, with the hosts and endpoints that are missing. */
import { resolve } from 'node:path';
import { type DeployOptions, deployHandler } from '../deploying.js';
import { routeName } from '../names.js';
import { requireProject } from '../project.js';
import type { CommonOptions, Session } from '../session.js';
import { ensureDomain, ensureEndpoint, requireSome } from '../targets.js';
import { safeLine } from '../text.js';

export async function deploy(
  session: Session,
  { message, percent }: CommonOptions & DeployOptions,
  path = '.',
): Promise<void> {
  const { file, endpoints } = await requireProject(path);
  const wanted = path.endsWith('.rs')
    ? endpoints.filter(({ handler }) => handler === resolve(path))
    : endpoints;
  requireSome(
    wanted,
    path.endsWith('.rs') ? `No endpoint in ${file} has the handler ${path}` : `${file} has no endpoints`,
  );
  const options = { ...(message !== undefined && { message }), ...(percent !== undefined && { percent }) };
  const results = [];
  for (const endpoint of wanted) {
    const name = routeName(endpoint);
    session.out.progress(`${name}: compiling ${endpoint.shown}`);
    const madeDomain = await ensureDomain(session, endpoint.host);
    const target = await ensureEndpoint(session, endpoint);
    const { version, cached, status } = await deployHandler(session, file, endpoint, target.id, options);
    results.push({
      endpoint: name,
      id: target.id,
      created: target.isNew,
      domain_created: madeDomain,
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
