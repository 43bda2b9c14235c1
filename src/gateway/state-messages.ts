/** States of endpoints on their way to a front. */
import type { CompiledPolicies } from './compiled-policies.js';
import type { EndpointState } from './messages.js';

/** Characters of policies in one message; one state may have more. */
const MESSAGE_CHARACTERS = 4 * 1024 * 1024;

/** Of policies that were sent before: each front that starts gets all of them. */
const lengths = new WeakMap<CompiledPolicies, number>();

/** States in messages that are not too large. */
export function* messagesOf(states: readonly EndpointState[]): Generator<readonly EndpointState[]> {
  let message: EndpointState[] = [];
  let characters = 0;
  for (const state of states) {
    const length = state.policies === undefined ? 0 : lengthOf(state.policies);
    if (message.length > 0 && characters + length > MESSAGE_CHARACTERS) {
      yield message;
      message = [];
      characters = 0;
    }
    message.push(state);
    characters += length;
  }
  if (message.length > 0) yield message;
}

function lengthOf(policies: CompiledPolicies): number {
  const known = lengths.get(policies);
  if (known !== undefined) return known;
  const { length } = JSON.stringify(policies);
  lengths.set(policies, length);
  return length;
}
