/** `edge logs`. */
import type { LogEntry, LogsPage } from '../generated/routes.js';
import { followLogs, showEntry } from '../log-entries.js';
import { endpointId, idOf, requireHost } from '../names.js';
import { findProject } from '../project.js';
import type { CommonOptions, Session } from '../session.js';
import { timeAgo } from '../times.js';

interface LogsOptions extends CommonOptions {
  readonly follow?: boolean;
  readonly since?: string;
  readonly until?: string;
  readonly level?: LogEntry['level'];
  readonly status?: string;
  readonly request?: string;
  readonly search?: string;
  readonly domain?: string;
  readonly collection?: string;
  readonly limit?: number;
}

const LISTED = 100;
/** The most that one request gets. */
const PAGE = 1000;

export async function logs(session: Session, options: LogsOptions, name?: string): Promise<void> {
  const query = await queryOf(session, options, name);
  if (options.follow) {
    const limit = options.limit === undefined ? {} : { limit: Math.min(options.limit, PAGE) };
    for await (const entry of followLogs(session, { ...query, ...limit }))
      session.out.item(entry, () => showEntry(session.out, entry));
    return;
  }
  const entries = await newest(session, query, options.limit ?? LISTED);
  for (const entry of entries.reverse()) session.out.item(entry, () => showEntry(session.out, entry));
  if (entries.length === 0) await requireHost(session, options.domain);
  if (entries.length === 0 && !session.out.json) session.out.note('There are no entries.');
}

type LogsQuery = Readonly<Record<string, string | number>>;

/** The endpoint is that of the argument; else, where nothing else is asked for, that of the folder. */
async function queryOf(session: Session, options: LogsOptions, name: string | undefined): Promise<LogsQuery> {
  const { since, until, level, status, request, search, domain, collection } = options;
  const isElsewhere = domain !== undefined || collection !== undefined || request !== undefined;
  const project = name === undefined && !isElsewhere ? await findProject('.') : undefined;
  const isOfOne = name !== undefined || project?.endpoints.length === 1;
  return {
    ...(isOfOne && { endpoint_id: await endpointId(session, name) }),
    ...(domain !== undefined && { domain }),
    ...(collection !== undefined && { collection_id: await idOf(session, 'collection', collection) }),
    ...(since !== undefined && { since: timeAgo(since) }),
    ...(until !== undefined && { until: timeAgo(until) }),
    ...(level !== undefined && { level }),
    ...(status !== undefined && { status }),
    ...(request !== undefined && { request_id: request }),
    ...(search !== undefined && { search }),
  };
}

/** The newest entries first. */
async function newest({ api }: Session, query: LogsQuery, count: number): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  let cursor: string | null = null;
  do {
    const limit = Math.min(PAGE, count - entries.length);
    const page: LogsPage = await api.get('GET /api/logs', {
      query: { ...query, limit, ...(cursor !== null && { cursor }) },
    });
    entries.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null && entries.length < count);
  return entries;
}
