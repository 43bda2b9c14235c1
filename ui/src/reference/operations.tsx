/** The operations of a document by tag, and the chosen one. */
import { Fragment } from 'preact';
import { useMemo } from 'preact/hooks';
import { Link, useLocation } from 'wouter-preact';
import { useAddress } from '../base/address.js';
import { SearchField } from '../base/lists.js';
import { Empty } from '../base/notices.js';
import { Method } from '../base/text.js';
import { type Json, type Operation, operationsOf } from './document.js';
import { OperationView } from './operation-view.js';
import type { Destination } from './request.js';

interface OperationsProps {
  readonly document: Json;
  readonly destination: Destination;
}

export function Operations({ document, destination }: OperationsProps) {
  const operations = useMemo(() => operationsOf(document), [document]);
  const [params, change] = useAddress();
  const chosen = operations.find(({ id }) => id === params.get('op'));
  const search = params.get('search') ?? '';
  if (operations.length === 0) return <Empty title="The document has no operations" />;
  return (
    <div class={`reference${chosen ? ' chosen' : ''}`}>
      <div class="operations">
        <SearchField
          label="Search operations"
          value={search}
          onInput={(text) => change({ search: text }, true)}
        />
        <List operations={matchingOperations(operations, search)} chosen={chosen} />
      </div>
      {chosen ? (
        <OperationView key={chosen.id} document={document} operation={chosen} destination={destination} />
      ) : (
        <Empty title="Choose an operation">
          <p>What it takes and answers is shown here, with a form to call it.</p>
        </Empty>
      )}
    </div>
  );
}

function List({
  operations,
  chosen,
}: {
  readonly operations: readonly Operation[];
  readonly chosen: Operation | undefined;
}) {
  const [params] = useAddress();
  const [location] = useLocation();
  const tags = [...new Set(operations.map(({ tag }) => tag))];
  const pathTo = (id: string) => {
    const next = new URLSearchParams(params);
    next.set('op', id);
    return `${location}?${next}`;
  };
  if (operations.length === 0) return <p class="muted">No operation has this in its path or summary.</p>;
  return (
    <nav aria-label="Operations">
      {tags.map((tag) => (
        <section key={tag} aria-label={tag}>
          <h2>{tag}</h2>
          <ul>
            {operations
              .filter((one) => one.tag === tag)
              .map(({ id, method, path, summary }) => (
                <li key={id}>
                  <Link
                    href={pathTo(id)}
                    title={summary}
                    aria-current={id === chosen?.id ? 'page' : undefined}
                  >
                    <Method name={method} />{' '}
                    <span class="path">
                      <Path path={path} />
                    </span>
                  </Link>
                </li>
              ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

/** Broken behind its slashes where it is too long for a line. */
function Path({ path }: { readonly path: string }) {
  return (
    <>
      {path.split(/(?<=\/)/).map((part, at) => (
        <Fragment key={at}>
          {at > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </>
  );
}

function matchingOperations(operations: readonly Operation[], search: string): readonly Operation[] {
  const words = search.toLowerCase().split(/\s+/);
  return operations.filter(({ id, method, path, summary, tag }) => {
    const text = `${method} ${path} ${id} ${summary} ${tag}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
