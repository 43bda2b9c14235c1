/** What a worker builds once before it can compile handlers, and how far it is. */
import { type Static, Type } from '@sinclair/typebox';

/** A copy of the toolchain for builds that run as other users. */
export const TOOLCHAIN = 'Rust toolchain';
/** The SDK: all handlers are linked against it. */
export const SDK = 'Rust SDK';
/** The SDK with tokio: handlers with the async macros are linked against it. */
export const ASYNC_SDK = 'Rust SDK with async support';

/** Where the details of a problem are, for clients that cannot know the file. */
export const WORKER_LOG = 'the log of the worker';

/** Something that a worker is preparing. */
export const Preparation = Type.Object(
  {
    what: Type.String(),
    crates: Type.Integer({ description: 'Crates that are compiled' }),
    of: Type.Union([Type.Integer(), Type.Null()], {
      description:
        'Crates in all; null until that is known, and while another worker of the machine builds them',
    }),
    seconds: Type.Integer({ description: 'For how long this worker has been at it' }),
    problem: Type.Union([Type.String(), Type.Null()], {
      description: 'Why the last try failed, as a sentence; it is tried again until it succeeds',
    }),
  },
  { title: 'Preparation' },
);
export type Preparation = Static<typeof Preparation>;

/** A set of crates that a worker is building. */
export const BuildingCrates = Type.Object(
  {
    crates: Type.Integer({ description: 'Crates that are compiled' }),
    of: Type.Union([Type.Integer(), Type.Null()], {
      description: 'Crates in all; null until they are resolved and downloaded',
    }),
    crate: Type.Union([Type.String(), Type.Null()], {
      description: 'The crate that is being compiled, the longest of several',
    }),
    crate_seconds: Type.Union([Type.Integer(), Type.Null()], { description: 'For how long' }),
    seconds: Type.Integer({ description: 'For how long the worker has been at all of them' }),
    builds: Type.Array(
      Type.Object({ id: Type.String(), endpoint: Type.Union([Type.String(), Type.Null()]) }),
      { description: 'The builds that wait for them, with the names of their endpoints' },
    ),
  },
  { title: 'BuildingCrates' },
);
export type BuildingCrates = Static<typeof BuildingCrates>;

/** The preparation as a line: `Rust SDK: crates 12 of 34, 20 s`. */
export function describePreparation({ what, crates, of, seconds, problem }: Preparation): string {
  const progress = of === null ? '' : `crates ${crates} of ${of}, `;
  return `${what}: ${progress}${seconds} s${problem === null ? '' : ` (${problem})`}`;
}
