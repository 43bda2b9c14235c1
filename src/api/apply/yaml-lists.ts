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

  /** @param indent spaces before each line */
  async write(items: readonly object[], indent = 0): Promise<string> {
    let text = '';
    for (const { members, isLong } of groupsOf(items, this.atOnce)) {
      const group = members.map(([, item]) => item as object);
      text += isLong ? await this.#writeLong(group, indent) : yamlList({ items: group, indent });
      await this.#pauses.here();
    }
    return text;
  }

  /** An endpoint may have many schedules with large bodies: each is a task of its own. */
  async #writeLong([item = {}]: readonly object[], indent: number): Promise<string> {
    const { schedules, ...others } = item as { readonly schedules?: readonly object[] };
    if (!schedules) return this.threads.run(this.owner, 'yamlList', { items: [item], indent });
    const text = await this.write([others], indent);
    const margin = ' '.repeat(indent + 2);
    return `${text}${margin}schedules:\n${await this.write(schedules, indent + 4)}`;
  }
}
