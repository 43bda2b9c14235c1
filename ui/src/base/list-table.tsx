/** A table of a list. Where it is narrow, each row stands by itself: its cells say their column (`data-label`). */
import type { ComponentChildren } from 'preact';

interface ListTableProps {
  readonly columns: readonly string[];
  /** Whether one more column has buttons. */
  readonly hasActions?: boolean;
  /** Within something that is a card already. */
  readonly isBare?: boolean;
  readonly children: ComponentChildren;
}

export function ListTable({ columns, hasActions, isBare, children }: ListTableProps) {
  return (
    <div class={isBare ? 'scroll-x' : 'card scroll-x'}>
      <table class="list">
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
            {hasActions && (
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
