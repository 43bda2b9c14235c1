/**
 * Who gives way when the log is full. The room is shared by domains, and what a domain has by its endpoints: whoever
 * needs less than an equal share keeps all, and the others share what that leaves (max-min fairness). Of endpoints that
 * have more, the oldest entries go. Pure.
 */

/** What an endpoint has in an hour. */
export interface HourUsage {
  /** Milliseconds since 1970. */
  readonly hour: number;
  readonly endpointId: string;
  /**
   * The host of the domain whose share it takes. Hosts without a domain share one, and so do endpoints that no longer
   * exist, for which it is null.
   */
  readonly host: string | null;
  readonly bytes: number;
  /** Whether it can be taken away: hours in which is written stay. */
  readonly isOver: boolean;
}

/** What is to go of an hour: of each of these endpoints the oldest entries. */
export interface Cut {
  readonly hour: number;
  /** Parts by endpoint, more than 0; 1: all of its entries. */
  readonly parts: ReadonlyMap<string, number>;
}

/** @param room bytes for all @returns hours with what is to go, the oldest first; none when all have room */
export function cutsOf(usage: readonly HourUsage[], room: number): Cut[] {
  const hosts = grouped(usage, ({ host }) => host ?? '');
  const hostRoom = shareOf([...hosts.values()].map(sum), room);
  const cuts = new Map<number, Map<string, number>>();
  for (const ofHost of hosts.values()) {
    const endpoints = grouped(ofHost, ({ endpointId }) => endpointId);
    const endpointRoom = shareOf([...endpoints.values()].map(sum), Math.min(sum(ofHost), hostRoom));
    for (const [endpointId, hours] of endpoints) {
      let excess = sum(hours) - endpointRoom;
      for (const { hour, bytes } of hours.filter(({ isOver }) => isOver).sort((a, b) => a.hour - b.hour)) {
        // Less than a byte is rounding.
        if (excess < 1) break;
        const parts = cuts.get(hour) ?? new Map<string, number>();
        cuts.set(hour, parts.set(endpointId, Math.min(1, excess / bytes)));
        excess -= bytes;
      }
    }
  }
  return [...cuts].sort(([a], [b]) => a - b).map(([hour, parts]) => ({ hour, parts }));
}

/** The largest share that each may have so that all together fit: whoever needs less leaves the rest to others. */
function shareOf(needs: readonly number[], room: number): number {
  let left = room;
  const sorted = needs.toSorted((a, b) => a - b);
  for (const [place, need] of sorted.entries()) {
    const share = left / (sorted.length - place);
    if (need > share) return share;
    left -= need;
  }
  return Number.POSITIVE_INFINITY;
}

function sum(usage: readonly HourUsage[]): number {
  return usage.reduce((total, { bytes }) => total + bytes, 0);
}

function grouped(
  usage: readonly HourUsage[],
  keyOf: (one: HourUsage) => string,
): ReadonlyMap<string, HourUsage[]> {
  const groups = new Map<string, HourUsage[]>();
  for (const one of usage) {
    const group = groups.get(keyOf(one));
    if (group) group.push(one);
    else groups.set(keyOf(one), [one]);
  }
  return groups;
}
