/** Who looks at this, and what they may do: what they may not is not offered. */
import { computed, signal } from '@preact/signals';
import type { Me } from '../generated/routes.js';
import { beginSession, call, pauseReading, sessionNow, whenSignedOut } from './client.js';
import { forgetAll, invalidate } from './query.js';

export type Permission = Me['permissions'][number];

/** Undefined until the API has said it. */
export const me = signal<Me | undefined>(undefined);
/** Whether the API knows who sends requests, or asks nobody. */
export const isKnown = computed(() => me.value !== undefined && me.value.kind !== null);

/** The other tabs of this browser have the same session: they ask again who this is. */
const tabs = new BroadcastChannel('edge-session');
tabs.onmessage = () => void checkSession().catch(() => undefined); // the next loss of the connection says it

/** Asks the API who this is. @throws ApiError */
export async function loadSession(): Promise<void> {
  me.value = (await call('GET /api/session')).data;
}

export function may(permission: Permission): boolean {
  return me.value?.permissions.includes(permission) ?? false;
}

/** @throws ApiError */
export async function signIn(email: string, password: string): Promise<void> {
  const { data } = await call('POST /api/session', { body: { email, password } });
  adopt(data);
  tabs.postMessage('signed in');
}

/** @throws ApiError */
export async function signOut(): Promise<void> {
  pauseReading(true);
  try {
    me.value = (await call('DELETE /api/session')).data;
    forgetAll();
    tabs.postMessage('signed out');
  } catch (thrown) {
    pauseReading(false);
    throw thrown;
  }
}

interface FirstAdmin {
  readonly email: string;
  readonly name: string;
  readonly password: string;
}

/**
 * Makes the first user, from whom on the API asks everybody who they are, and signs them in.
 * @throws ApiError
 */
export async function makeFirstAdmin(admin: FirstAdmin): Promise<void> {
  pauseReading(true);
  try {
    await call('POST /api/users', { body: { ...admin, role: 'admin' } });
    await signIn(admin.email, admin.password);
  } finally {
    pauseReading(false);
  }
}

/** Asks again who this is: somebody may have signed in or out elsewhere, or got another role. @throws ApiError */
export async function checkSession(): Promise<void> {
  const session = sessionNow();
  const { data } = await call('GET /api/session');
  if (!session.isSame()) return;
  if (data.kind === null) expire();
  else if (isExpired.peek() || JSON.stringify(data) !== JSON.stringify(me.peek())) adopt(data);
}

/** What has been read for the same person is shown until it is read again; what they had typed stays. */
function adopt(now: Me): void {
  beginSession();
  isExpired.value = false;
  pauseReading(false);
  if (me.peek()?.user?.id === now.user?.id) invalidate('/api/');
  else forgetAll();
  me.value = now;
}

/** The session has ended under an open page, which stays as it is under the form to sign in. */
export const isExpired = signal(false);

function expire(): void {
  if (!me.peek()?.kind) return;
  pauseReading(true);
  isExpired.value = true;
}

whenSignedOut(expire);
