/**
 * YAML of lists of objects, some of which may be large: a large one is written in a thread, what is small here, with
 * pauses.
 */
import type { Threads } from '../../threads/threads.js';
import { groupsOf } from '../../util/json-text.js';
import { Pauses } from '../../util/pauses.js';
import { yamlList } from '../../util/yaml-text.js';

/** Characters of JSON whose YAML is written at once, which takes some milliseconds. */
const AT_ONCE = 16 * 1024;

export class YamlLists {
  readonly #pauses = new Pauses();

  /** @param owner whose turn it takes to write large ones */
  constructor(
    private readonly threads: Pick<Threads, 'run'>,
    private readonly owner: string,
    private readonly atOnce = AT_ONCE,
  ) {}

  /** @param indent spaces before each line @returns the text, in pieces */
  async write(items: readonly object[], indent = 0): Promise<string[]> {
    const pieces: string[] = [];
    for (const { members, isLong } of groupsOf(items, this.atOnce)) {
      const group = members.map(([, item]) => item as object);
      if (isLong) pieces.push(...(await this.#writeLong(group, indent)));
      else pieces.push(yamlList({ items: group, indent }));
      await this.#pauses.here();
    }
    return pieces;
  }

  /** An endpoint may have many schedules with large bodies: each is a task of its own. */
  async #writeLong([item = {}]: readonly object[], indent: number): Promise<string[]> {
    const { schedules, ...others } = item as { readonly schedules?: readonly object[] };
    if (!schedules) return [await this.threads.run(this.owner, 'yamlList', { items: [item], indent })];
    const heading = `${' '.repeat(indent + 2)}schedules:\n`;
    return [...(await this.write([others], indent)), heading, ...(await this.write(schedules, indent + 4))];
  }
}
