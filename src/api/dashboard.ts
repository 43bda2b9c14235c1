/** The queue dashboard at `/queues`. */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { KoaAdapter } from '@bull-board/koa';
import type { Queue } from 'bullmq';
import type { Middleware } from 'koa';
import { APPLY_QUEUE, INVOKE_QUEUE } from '../queues/jobs.js';
import type { Queues } from '../queues/queues.js';
import type { ApiState } from './context.js';

const PATH = '/queues';

/** A job as the dashboard has it. */
interface ShownJob {
  readonly name?: string;
  readonly data?: {
    readonly endpoint?: string;
    readonly buildId?: string;
    readonly id?: string;
    readonly applyId?: string;
  };
  readonly finishedOn?: number | null;
  readonly failedReason?: string | null;
  /** What an attempt has come to, of queues whose jobs say it. */
  readonly returnvalue?: unknown;
}

/** Jobs have the name of their endpoint and how they ended, and a link to what the API knows of them. */
function adapterOf(queue: Queue): BullMQAdapter {
  const adapter = new BullMQAdapter(queue, {
    externalJobUrl: ({ data }: ShownJob) => {
      if (data?.buildId !== undefined) return { displayText: 'Build', href: `/api/builds/${data.buildId}` };
      if (queue.name === APPLY_QUEUE)
        return { displayText: 'Apply', href: `/api/applies/${data?.applyId ?? ''}` };
      if (queue.name === INVOKE_QUEUE) return { displayText: 'Job', href: `/api/jobs/${data?.id ?? ''}` };
      return { displayText: 'API', href: '/api/openapi.json' };
    },
  });
  adapter.setFormatter(
    'name',
    ({ name = queue.name, data, finishedOn, failedReason, returnvalue }: ShownJob) => {
      const done = typeof returnvalue === 'string' ? returnvalue : 'done';
      const outcome = failedReason ? 'failed' : finishedOn ? done : undefined;
      const subject = data?.endpoint === undefined ? name : `${name} ${data.endpoint}`;
      return outcome === undefined ? subject : `${subject}: ${outcome}`;
    },
  );
  return adapter;
}

/** Its scripts make styles, so those may be inline; nothing comes from elsewhere, and nothing goes there. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'self'",
].join('; ');
/** Its page asks another server for fonts, without which it has those of the system. */
const FOREIGN_LINKS = /<link\b[^>]*\bhref="https?:[^>]*>/g;

/** What is there before its scripts is dark, whatever its theme is. */
const FIRST_BACKGROUND = ';background:#151a21;';

/** Serves the dashboard; mount it after authentication. */
export function dashboard(queues: Queues): Middleware<ApiState> {
  const serverAdapter = new KoaAdapter().setBasePath(PATH);
  createBullBoard({
    queues: queues.all.map(adapterOf),
    serverAdapter,
    options: { uiConfig: { boardTitle: 'Queues', hideDocsLink: true } },
  });
  const serve = serverAdapter.registerPlugin() as unknown as Middleware<ApiState>;
  return async (context, next) => {
    let isServed = true;
    await serve(context, () => {
      isServed = false;
      return next();
    });
    if (!isServed) return;
    context.set('Content-Security-Policy', CONTENT_SECURITY_POLICY);
    if (typeof context.body === 'string' && context.response.is('html'))
      context.body = context.body.replace(FOREIGN_LINKS, '').replace(FIRST_BACKGROUND, ';');
  };
}
