/** What is imported and where to, and the requests that say so. */
import { type Answer, call } from '../api/client.js';
import { upload } from '../api/upload.js';
import type { BundleImported, ImportAccepted, ImportPlan, OpenApiImported } from '../generated/routes.js';

/** A ZIP, or the text of a document. */
export type Source = { readonly bundle: File } | { readonly spec: string };

export interface Target {
  /** `*`: all hosts. */
  readonly host: string;
  /** Id of the domain with this host; undefined: there is none yet. */
  readonly domainId: string | undefined;
  /** `title`: the one with the title of the document. */
  readonly collection: 'title' | 'none' | { readonly id: string };
}

export interface Options {
  readonly validate: 'off' | 'report' | 'enforce';
  /** Whether the handlers of a bundle are compiled and started. */
  readonly deploys: boolean;
}

export interface ImportRequest {
  readonly source: Source;
  readonly target: Target;
  readonly options: Options;
}

/** What an import would do. @throws ApiError */
export async function planImport(request: ImportRequest, signal: AbortSignal): Promise<Answer<ImportPlan>> {
  return (await send(request, true, signal)) as Answer<ImportPlan>;
}

/** @returns the id of the import, which may still go on. @throws ApiError */
export async function startImport(
  request: ImportRequest,
  onProgress: (part: number) => void,
): Promise<string> {
  const { data } = await send(request, false, undefined, onProgress);
  return (data as OpenApiImported | BundleImported | ImportAccepted).import_id;
}

function send(
  { source, target: { host, domainId, collection }, options: { validate, deploys } }: ImportRequest,
  isTrial: boolean,
  signal?: AbortSignal,
  onProgress?: (part: number) => void,
): Promise<Answer<unknown>> {
  const place = {
    domain: host,
    ...(domainId !== undefined && { domain_id: domainId }),
    ...(typeof collection === 'object' && { collection_id: collection.id }),
  };
  const isByTitle = collection === 'title' && domainId !== undefined;
  const query = { validate, ...(isTrial && { dry_run: 'true' as const }) };
  if ('spec' in source) {
    const body = { ...place, spec: source.spec, create_collection: isByTitle };
    return call('POST /api/import/openapi', { query, body }, signal);
  }
  const form = new FormData();
  form.set('bundle', source.bundle);
  return upload({
    ...{ route: 'POST /api/import/bundle', body: form },
    query: { ...query, ...place, create_collection: isByTitle, compile: deploys, start: deploys },
    headers: isTrial ? {} : { prefer: 'respond-async' },
    ...(signal && { signal }),
    ...(onProgress && { onProgress }),
  });
}
