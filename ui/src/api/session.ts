/** Who looks at this, and what they may do: what they may not is not offered. */
import { computed, signal } from '@preact/signals';
import type { Me } from '../generated/routes.js';
import { call, whenSignedOut } from './client.js';
import { forgetAll } from './query.js';

export type Permission = Me['permissions'][number];

/** Undefined until the API has said it. */
export const me = signal<Me | undefined>(undefined);
/** Whether the API knows who sends requests, or asks nobody. */
export const isKnown = computed(() => me.value !== undefined && me.value.kind !== null);

/** Asks the API who this is. @throws ApiError */
export async function loadSession(): Promise<void> {
  me.value = (await call('GET /api/session')).data;
}

export function may(permission: Permission): boolean {
  return me.value?.permissions.includes(permission) ?? false;
}

/** @throws ApiError */
export async function signIn(email: string, password: string): Promise<void> {
  const before = me.peek()?.user?.id;
  const { data } = await call('POST /api/session', { body: { email, password } });
  // What the same person had typed stays when a session has expired.
  if (before !== data.user?.id) forgetAll();
  isExpired.value = false;
  me.value = data;
}

/** @throws ApiError */
export async function signOut(): Promise<void> {
  me.value = (await call('DELETE /api/session')).data;
  forgetAll();
}

/** The session has ended under an open page, which stays as it is under the form to sign in. */
export const isExpired = signal(false);

whenSignedOut(() => {
  if (me.peek()?.kind) isExpired.value = true;
});
