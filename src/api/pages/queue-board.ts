/** The pages of the queue dashboard. Their packages are large; `dashboard.ts` loads them when somebody opens one. */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { KoaAdapter } from '@bull-board/koa';
import type { Queue } from 'bullmq';
import type { Middleware } from 'koa';
import type { Queues } from '../../queues/queues.js';
import type { ApiState } from '../route/context.js';

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
      if (queue.name === 'apply')
        return { displayText: 'Apply', href: `/api/applies/${data?.applyId ?? ''}` };
      if (queue.name === 'invoke') return { displayText: 'Job', href: `/api/jobs/${data?.id ?? ''}` };
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

/** Serves what is below `path`. */
export function queueBoard(queues: Queues, path: string): Middleware<ApiState> {
  const serverAdapter = new KoaAdapter().setBasePath(path);
  createBullBoard({
    queues: queues.all.map(adapterOf),
    serverAdapter,
    options: { uiConfig: { boardTitle: 'Queues', hideDocsLink: true } },
  });
  return serverAdapter.registerPlugin() as unknown as Middleware<ApiState>;
}
