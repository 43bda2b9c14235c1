/** How far an apply is, in words. */
import type { Tone } from '../base/text.js';
import type { ApplySummary } from '../generated/routes.js';

type State = ApplySummary['state'];

/** For each state: a word, its colour, and what it means for the installation. */
export const STATES: Readonly<Record<State, readonly [word: string, tone: Tone, meaning: string]>> = {
  queued: ['queued', 'idle', 'Nothing is changed yet.'],
  compiling: ['compiling', 'warn', 'The code is compiled. Nothing is changed yet.'],
  waiting: ['waiting', 'warn', 'Other applies are before it. Nothing is changed yet.'],
  preparing: ['preparing', 'warn', 'Gateways start the new handlers. Nothing is changed yet.'],
  committing: ['committing', 'warn', 'Everything is changed at once.'],
  converging: ['converging', 'warn', 'It is changed. Gateways take the changes.'],
  succeeded: ['succeeded', 'ok', 'Everything is as the files say.'],
  failed: ['failed', 'bad', 'Nothing was changed.'],
  undoing: ['undoing', 'warn', 'Not all gateways could take it. Everything is rolled back.'],
  undone: ['undone', 'bad', 'Not all gateways could take it. Everything is as before.'],
  not_undone: ['not undone', 'bad', 'It could not be undone: its changes remain.'],
};

/** What is counted while it goes on. */
const STEPS: Readonly<Record<string, string>> = {
  compiled: 'Handlers compiled',
  prepared: 'Handlers started',
  earlier: 'Earlier applies that have ended',
  converged: 'Endpoints taken by gateways',
};

export const stepOf = (name: string): string => STEPS[name] ?? name;

/** The count that is growing in a state; undefined where none is. */
export function currentStep({ state, progress }: Pick<ApplySummary, 'state' | 'progress'>) {
  const steps: Partial<Record<State, string>> = {
    ...{ compiling: 'compiled', waiting: 'earlier', preparing: 'prepared', converging: 'converged' },
  };
  const name = steps[state];
  const counted = name === undefined ? undefined : progress[name];
  return name !== undefined && counted && counted.of > 0 ? { label: stepOf(name), ...counted } : undefined;
}
