/** Tests of connections, and how the last one of each service went: kept in this browser. */
import { signal } from '@preact/signals';
import { call, type Data } from '../api/client.js';

export type TestOutcome = Data<'POST /api/services/{id}/test'> & { readonly at: string };

const KEY = 'edge-service-tests';
/** The outcome of the last test of each service, by its id. */
export const outcomes = signal<Readonly<Record<string, TestOutcome>>>(stored());

/** Tests whether a service reaches its backend. @throws ApiError */
export async function testService(id: string): Promise<void> {
  const { data } = await call('POST /api/services/{id}/test', { params: { id } });
  outcomes.value = { ...outcomes.value, [id]: { ...data, at: new Date().toISOString() } };
  localStorage.setItem(KEY, JSON.stringify(outcomes.value));
}

/** What is known no longer holds: the settings have changed. */
export function forgetTest(id: string): void {
  const { [id]: _forgotten, ...others } = outcomes.value;
  outcomes.value = others;
  localStorage.setItem(KEY, JSON.stringify(others));
}

function stored(): Readonly<Record<string, TestOutcome>> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}') as Record<string, TestOutcome>;
  } catch {
    return {};
  }
}
