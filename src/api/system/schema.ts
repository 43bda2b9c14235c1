/** Health and statistics as the contract shows them. */
import { Type } from '@sinclair/typebox';

export const Health = Type.Object(
  { status: Type.Literal('healthy'), version: Type.String() },
  { title: 'Health' },
);

export const Statistics = Type.Object(
  {
    endpoints_total: Type.Integer(),
    endpoints_running: Type.Integer({ description: 'Endpoints that a live gateway runs a process for' }),
    requests_handled: Type.Integer({ description: 'Requests all gateways have handled, ever' }),
    uptime_seconds: Type.Integer({ description: 'Uptime of the process that answers' }),
  },
  { title: 'Statistics' },
);
