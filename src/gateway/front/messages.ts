/**
 * What the supervisor of a gateway and its front tell each other, as the supervisor groups it. The messages are in
 * `src/contracts/front.ts`. The supervisor sends whole states of endpoints, never differences: applying one twice is
 * harmless, and a new front gets all of them.
 */
import type {
  EndpointMessage,
  FromFront,
  RateStatus,
  Serving,
  Settings,
  ToFront,
} from '../../contracts/front.js';
import type { CompiledPolicies, NamedPolicies } from '../policies/compiled-policies.js';

export type Configure = Message<'configure'>;

export type RunningState = Extract<Serving, { readonly kind: 'running' }>;

/** All that a front needs to know of an endpoint, with the texts of its policies. */
export interface EndpointState extends Omit<EndpointMessage, 'policies'> {
  /** None for most. */
  readonly policies?: CompiledPolicies;
}

/** The state of an endpoint in a message. */
export interface SentState extends Omit<EndpointMessage, 'policies'> {
  readonly policies?: NamedPolicies;
}

/** What a message has of endpoints. */
export interface StateMessage extends Required<Pick<Message<'apply'>, 'policies'>> {
  readonly upserts: readonly SentState[];
}

/** The settings of a front. Those that may be missing are missing in the version before only. */
export type FrontSettings = Required<Settings>;

/** What ACME servers ask for. */
export type FrontChallenges = Pick<Message<'challenges'>, 'http' | 'tls'>;

/** The messages of one type. */
type Message<Type extends ToFront['type']> = Extract<ToFront, { readonly type: Type }>;

type NumberedRequest = Extract<ToFront, { readonly seq: number }>;
type WithoutSeq<Request> = Request extends NumberedRequest ? Omit<Request, 'seq'> : never;

/** A request to a front, which it answers with `done`; whoever sends it gives it a number. */
export type FrontRequest = WithoutSeq<NumberedRequest>;

/** What a front is told without an answer. */
export type FrontNotice = Exclude<ToFront, NumberedRequest | Configure>;

export type Share = Message<'share'>;

/** A request was counted by so many rules. Null: the front has to count it by itself. */
export type RateStatuses = readonly (RateStatus | null)[];

/** What a front reports unasked. */
export type FrontReport = Exclude<FromFront, { readonly type: 'done' }>;
