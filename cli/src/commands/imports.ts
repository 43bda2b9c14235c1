/** `edge import openapi` and `edge import bundle`. */
import { basename } from 'node:path';
import { CliError, UsageError } from '../errors.js';
import { readInput } from '../files.js';
import { followToEnd } from '../following.js';
import type { BundleImported, Import, ImportPlan, OpenApiImported } from '../generated/routes.js';
import { idOf } from '../names.js';
import { type BuildingCrates, buildingCrates } from '../preparing.js';
import { type CommonOptions, type Session, withInterruptHint } from '../session.js';
import { safeLine } from '../text.js';

interface ImportOptions extends CommonOptions {
  readonly domain: string;
  readonly collection?: string;
  readonly createCollection?: boolean;
  readonly validate?: 'off' | 'report' | 'enforce';
  readonly dryRun?: boolean;
  readonly compile?: boolean;
  readonly start?: boolean;
}

export async function openapi(session: Session, options: ImportOptions, file: string): Promise<void> {
  const spec = readInput(file).toString('utf8');
  const { collection_id, domain_id } = await targetOf(session, options);
  session.out.progress(`Importing ${basename(file)}`);
  const { data, warnings } = await session.api.call('POST /api/import/openapi', {
    query: flagsOf(options),
    body: {
      ...{ spec, domain: options.domain },
      ...(domain_id !== undefined && { domain_id }),
      ...(collection_id !== undefined && { collection_id }),
      ...(options.createCollection && { create_collection: true }),
    } as never,
  });
  session.out.warnings(warnings);
  show(session, data as OpenApiImported | ImportPlan);
}

export async function bundle(session: Session, options: ImportOptions, file: string): Promise<void> {
  const form = new FormData();
  form.append('bundle', new Blob([readInput(file)]), basename(file));
  const { collection_id, domain_id } = await targetOf(session, options);
  const compiles = options.compile === true || options.start === true;
  session.out.progress(`Importing ${basename(file)}`);
  const { data, warnings, status } = await session.api.call('POST /api/import/bundle', {
    query: {
      ...{ ...flagsOf(options), domain: options.domain },
      ...(domain_id !== undefined && { domain_id }),
      ...(collection_id !== undefined && { collection_id }),
      ...(options.createCollection && { create_collection: 'true' as const }),
      ...(compiles && { compile: 'true' as const }),
      ...(options.start && { start: 'true' as const }),
    },
    body: form,
    ...(compiles && !options.dryRun && { headers: { prefer: 'respond-async' } }),
  });
  session.out.warnings(warnings);
  if (status !== 202) return show(session, data as BundleImported | ImportPlan);
  const { import_id: id } = data as { import_id: string };
  const interruptHint = `The import continues at the gateway: GET /api/imports/${id} shows it.`;
  const following = follow(session, id, interruptHint);
  const imported = await withInterruptHint(session, interruptHint, following, { areTold: true });
  session.out.warnings(imported.warnings);
  show(session, imported.result);
}

type Ended = Import & { readonly result: NonNullable<Import['result']> };

/** Shows the progress until the import has ended. */
function follow(session: Session, id: string, interruptHint: string): Promise<Ended> {
  const { api, out } = session;
  const params = { id };
  return followToEnd(
    session,
    {
      look: async () => {
        const now = await api.get('GET /api/imports/{id}', { params });
        return now.result === null ? undefined : { ...now, result: now.result };
      },
      events: (last) => api.events('GET /api/imports/{id}/events', { params }, last),
      show: ({ name, data }) => {
        if (name === 'progress') out.progress(progressOf(data as Progress));
      },
    },
    interruptHint,
  );
}

type Progress = Pick<Import, 'counts'> & { readonly crates?: readonly BuildingCrates[] };

function progressOf({ counts, crates = [] }: Progress): string {
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  const handlers = `Handlers: ${parts.map(([state, count]) => `${count} ${state}`).join(', ')}`;
  return [handlers, ...crates.map(buildingCrates)].join('; ');
}

function show(session: Session, result: OpenApiImported | BundleImported | ImportPlan): void {
  const { out } = session;
  out.result(result, () => {
    const would = 'dry_run' in result ? 'Would be ' : '';
    for (const endpoint of result.endpoints) {
      const change = 'change' in endpoint ? endpoint.change : 'status' in endpoint ? endpoint.status : '';
      out.line(
        safeLine(`${endpoint.method.padEnd(6)} ${endpoint.path}  ${endpoint.name}  ${change}`.trimEnd()),
      );
    }
    const { endpoints_created: made, endpoints_updated: changed } = result;
    out.line(`${would}${would ? 'created' : 'Created'}: ${made}, updated: ${changed}`);
    if ('compiled' in result) out.line(`Compiled: ${result.compiled}, started: ${result.started}`);
  });
  const errors = 'errors' in result ? result.errors : [];
  if (errors.length === 0) return;
  if (!out.json)
    for (const { stage, name, handler, message } of errors)
      out.note(`${stage} ${name ?? ''} ${handler ?? ''}: ${message}`);
  throw new CliError(`${errors.length} handlers of the import have failed`, { code: 'import_failed' });
}

async function targetOf(
  session: Session,
  { domain, collection, createCollection }: ImportOptions,
): Promise<{ domain_id?: string; collection_id?: string }> {
  if (collection !== undefined && createCollection)
    throw new UsageError('Give one of --collection and --create-collection');
  return {
    ...(collection !== undefined && { collection_id: await idOf(session, 'collection', collection) }),
    ...(createCollection && { domain_id: await idOf(session, 'domain', domain) }),
  };
}

function flagsOf({ dryRun, validate }: ImportOptions) {
  return { ...(dryRun && { dry_run: 'true' as const }), ...(validate !== undefined && { validate }) };
}
