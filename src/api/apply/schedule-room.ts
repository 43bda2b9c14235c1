/** Whether the schedules of an owner fit into what its queued requests and schedules may take. */
import { keyOf, ownerAmong } from '../../apply/keys.js';
import type { EndpointObject, InstallationObject, ObjectChange } from '../../apply/objects.js';
import { AppError } from '../../errors.js';
import { titleOfOwner } from '../../model/owner.js';
import type { StoredInstallation } from '../../store/installation.js';
import { queuedBytesOf } from '../../store/queued-bytes.js';

type Objects = ReadonlyMap<string, InstallationObject>;

export class ScheduleRoom {
  readonly #limit: number;
  readonly #after: Objects;
  /** Bytes of schedules by owners, now and after the changes. */
  readonly #bytes: Readonly<Record<'before' | 'after', ReadonlyMap<string, number>>>;

  constructor(
    changes: readonly ObjectChange[],
    stored: Pick<StoredInstallation, 'domains' | 'endpoints'>,
    limit: number,
  ) {
    this.#limit = limit;
    const before = new Map<string, InstallationObject>(
      [...stored.domains, ...stored.endpoints].map(({ object }) => [keyOf(object), object]),
    );
    const after = new Map(before);
    // Routes may change hands.
    for (const change of changes) if (change.before) after.delete(keyOf(change.before));
    for (const change of changes) if (change.after) after.set(keyOf(change.after), change.after);
    this.#after = after;
    this.#bytes = { before: scheduledBytes(before), after: scheduledBytes(after) };
  }

  /** Who has too many by another setting may have less of them. @throws AppError invalid_input */
  require({ host }: EndpointObject): void {
    const owner = ownerAmong(this.#after, host);
    const bytes = this.#bytes.after.get(owner) ?? 0;
    if (bytes <= this.#limit || bytes <= (this.#bytes.before.get(owner) ?? 0)) return;
    throw new AppError(
      'invalid_input',
      `schedules: those of ${titleOfOwner(owner)} take ${bytes} bytes; ` +
        `at most ${this.#limit} are accepted (JOBS_QUEUED_MB)`,
    );
  }
}

function scheduledBytes(objects: Objects): ReadonlyMap<string, number> {
  const bytes = new Map<string, number>();
  for (const object of objects.values()) {
    if (object.kind !== 'endpoint' || object.schedules.length === 0) continue;
    const owner = ownerAmong(objects, object.host);
    for (const { path, headers, body } of object.schedules) {
      const own = queuedBytesOf({ path, headers, body: { length: Buffer.byteLength(body ?? '', 'base64') } });
      bytes.set(owner, (bytes.get(owner) ?? 0) + own);
    }
  }
  return bytes;
}
