/**
 * Asks before all jobs of a queue are removed. The dashboard asks too, but by a script, which another script could
 * answer. Here the question is a page of its own, and the answer a form that a person sends from it.
 */
import type { Queue } from 'bullmq';
import { AppError } from '../../errors.js';
import type { Queues } from '../../queues/queues.js';
import type { ApiContext, Next } from '../route/context.js';

interface Removal {
  readonly question: (queue: string) => string;
  readonly explanation: string;
  readonly button: string;
  run(queue: Queue): Promise<unknown>;
}

const finished = (state: 'completed' | 'failed'): Removal => ({
  question: (queue) => `Remove all ${state} jobs of the queue ${queue}?`,
  explanation: 'Only the dashboard shows them; builds, imports and queued requests keep their outcomes.',
  button: `Remove the ${state} jobs`,
  run: (queue) => queue.clean(0, 0, state),
});

/** What can be removed, by the names that the pages have. */
const REMOVALS: Readonly<Record<string, Removal>> = {
  empty: {
    question: (queue) => `Remove all waiting jobs of the queue ${queue}?`,
    explanation:
      'Jobs that are being processed continue. Builds whose jobs are removed are queued again after some seconds, and ' +
      'fail after five times; requests for handlers are queued again, too.',
    button: 'Remove the waiting jobs',
    run: (queue) => queue.drain(),
  },
  completed: finished('completed'),
  failed: finished('failed'),
  obliterate: {
    question: (queue) => `Remove all jobs of the queue ${queue}?`,
    explanation: 'This includes finished jobs, failed ones and those being processed.',
    button: 'Remove all jobs',
    run: async (queue) => {
      const wasPaused = await queue.isPaused();
      try {
        // Pauses the queue.
        await queue.obliterate({ force: true });
      } finally {
        if (!wasPaused) await queue.resume();
      }
    },
  },
};

/** The dashboard ignores case. Its `clean` removes the jobs of one state. */
const DASHBOARD_CALL = /^\/queues\/api\/queues\/([^/]+)\/(empty|obliterate|clean\/.*?)\/?$/i;
const CONFIRMATION = /^\/queues\/confirm\/([^/]+)\/(empty|obliterate|completed|failed)$/;

/** Replaces calls of the dashboard that remove all jobs; mount it before the dashboard. */
export function queueConfirmation({ all }: Queues) {
  const find = (name: string) => {
    const queue = all.find((each) => each.name === name);
    if (!queue) throw new AppError('not_found', 'There is no such queue');
    return queue;
  };
  return async (context: ApiContext, next: Next): Promise<void> => {
    const [, called = '', removal = ''] = DASHBOARD_CALL.exec(context.path) ?? [];
    if (removal !== '' && context.method === 'PUT') {
      const action = actionOf(removal.toLowerCase());
      const path = `/queues/confirm/${find(called).name}/${action}`;
      context.status = 409;
      // The members that the dashboard shows.
      context.body = {
        error: 'This needs a confirmation',
        message: `Open ${path} in this browser to confirm it.`,
      };
      return;
    }
    const [, name = '', confirmedAction = ''] = CONFIRMATION.exec(context.path) ?? [];
    const confirmed = REMOVALS[confirmedAction];
    if (!confirmed) {
      await next();
      return;
    }
    const queue = find(name);
    if (context.method === 'POST') {
      requirePerson(context);
      await confirmed.run(queue);
      context.state.log.warn({ queue: queue.name, removal: confirmedAction }, 'jobs of a queue removed');
      context.redirect(`/queues/queue/${queue.name}`);
      context.status = 303;
      return;
    }
    if (!['GET', 'HEAD'].includes(context.method)) {
      context.set('Allow', 'GET, HEAD, POST');
      throw new AppError('method_not_allowed', `${context.path} has GET, HEAD, POST, not ${context.method}`);
    }
    context.set(
      'Content-Security-Policy',
      "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    context.type = 'html';
    context.body = render(queue.name, confirmed);
  };
}

/** What a call of the dashboard would do. */
function actionOf(removal: string): keyof typeof REMOVALS {
  const state = /^clean\/(completed|failed)$/.exec(removal)?.[1];
  return state ?? (removal === 'obliterate' ? 'obliterate' : 'empty');
}

/**
 * Browsers say in headers that no script can set whether a request shows a page of its own, and whether somebody has
 * clicked or typed (https://www.w3.org/TR/fetch-metadata/). They do so over TLS and on localhost only; elsewhere the
 * check of `Origin` has to suffice. Programs that send none of these headers need the key alone.
 */
function requirePerson(context: ApiContext): void {
  if (context.get('Sec-Fetch-Mode') === '') return;
  const isPerson =
    context.get('Sec-Fetch-Mode') === 'navigate' &&
    context.get('Sec-Fetch-Dest') === 'document' &&
    context.get('Sec-Fetch-User') === '?1' &&
    context.get('Sec-Fetch-Site') === 'same-origin';
  if (!isPerson) throw new AppError('foreign_origin', 'Confirm this on its page, in a window of its own');
}

/** Nothing of it comes from the request: the name is that of a known queue. */
function render(queue: string, { question, explanation, button }: Removal): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>${question(queue)}</title></head>
<body>
<h1>${question(queue)}</h1>
<p>${explanation} This cannot be undone.</p>
<form method="post"><button>${button}</button> <a href="/queues/queue/${queue}">Cancel</a></form>
</body>
</html>
`;
}
