/** States of endpoints on their way to a front. */
import { named } from '../policies/compiled-policies.js';
import type { EndpointState, SentState, StateMessage } from './messages.js';

/** Characters of policies in one message; one state may have more. */
const MESSAGE_CHARACTERS = 4 * 1024 * 1024;

/** States in messages that are not too large. Each message has a part that several of its states have once. */
export function* messagesOf(states: Iterable<EndpointState>): Generator<StateMessage> {
  let upserts: SentState[] = [];
  let texts = new Map<string, string>();
  let characters = 0;
  const message = () => ({ upserts, policies: Object.fromEntries(texts) });
  for (const state of states) {
    const parts = Object.values(state.policies?.parts ?? {});
    const added = () =>
      parts.reduce((sum, { digest, text }) => sum + (texts.has(digest) ? 0 : text.length), 0);
    if (upserts.length > 0 && characters + added() > MESSAGE_CHARACTERS) {
      yield message();
      upserts = [];
      texts = new Map();
      characters = 0;
    }
    characters += added();
    for (const { digest, text } of parts) texts.set(digest, text);
    upserts.push(sent(state));
  }
  if (upserts.length > 0) yield message();
}

function sent({ policies, ...state }: EndpointState): SentState {
  return { ...state, ...(policies && { policies: { digest: policies.digest, ...named(policies) } }) };
}
