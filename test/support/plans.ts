/** Plans of applies, as the API shows them. */
import type { HttpClient, HttpRequest, HttpResponse } from './client.js';

export interface ShownPlan {
  readonly stack: string;
  readonly plan_hash: string;
  readonly changes: readonly ShownChange[];
  readonly warnings: readonly string[];
}

export interface ShownChange {
  readonly action: string;
  readonly kind: string;
  readonly name: string;
  readonly fields: readonly {
    readonly path: string;
    readonly before: unknown;
    readonly after: unknown;
    readonly diff?: string;
  }[];
}

/** Texts of files by their paths. */
export type Files = Readonly<Record<string, string>>;

/** Asks for the plan of a folder. @param query begins with `&` */
export function askForPlan(
  api: HttpClient,
  files: Files,
  query = '',
  options: HttpRequest = {},
): Promise<HttpResponse> {
  return api.post(`/api/apply?dry_run=true${query}`, { files }, options);
}

/** Each change as a line: `create domain a.example`. */
export function linesOf({ changes }: Pick<ShownPlan, 'changes'>): string[] {
  return changes.map(({ action, kind, name }) => `${action} ${kind} ${name}`);
}

/** The fields of the change of one object: path, before, after. */
export function fieldsOf({ changes }: Pick<ShownPlan, 'changes'>, name: string): unknown[] {
  const change = changes.find((one) => one.name === name);
  return (change?.fields ?? []).map(({ path, before, after }) => [path, before, after]);
}
