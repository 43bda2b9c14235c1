/** The queue dashboard at `/queues`. */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { KoaAdapter } from '@bull-board/koa';
import type { Middleware } from 'koa';
import type { Queues } from '../queues/queues.js';
import type { ApiState } from './context.js';

const PATH = '/queues';

/** Serves the dashboard; mount it after authentication. */
export function dashboard(queues: Queues): Middleware<ApiState> {
  const serverAdapter = new KoaAdapter().setBasePath(PATH);
  createBullBoard({ queues: queues.all.map((queue) => new BullMQAdapter(queue)), serverAdapter });
  return serverAdapter.registerPlugin() as unknown as Middleware<ApiState>;
}
