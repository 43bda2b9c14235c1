/** The installation, a domain or a stack as files, to be saved. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { getFile } from '../api/client.js';
import { useQuery } from '../api/query.js';
import { may, me } from '../api/session.js';
import { useAddress } from '../base/address.js';
import { Binary, type Bytes } from '../base/binary.js';
import { Columns } from '../base/columns.js';
import { Button, SelectField, TextField } from '../base/controls.js';
import { saveFile } from '../base/download.js';
import { FirstOf } from '../base/first-of.js';
import { Empty, Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import { bytes, count } from '../base/text.js';
import { Visible } from '../base/visible.js';
import type { Export } from '../generated/routes.js';
import { Documents } from './documents.js';

type Content = Export['files'][string];

const ZIP = 'application/zip';

/** What is exported; neither: everything. */
interface Part {
  readonly domain?: string;
  readonly stack?: string;
}

export function ExportPage() {
  if (!may('endpoints:read'))
    return (
      <Page title="Export">
        <Empty title="You may not export">
          <p>An admin can give you the permission endpoints:read.</p>
        </Empty>
      </Page>
    );
  return <Choices />;
}

function Choices() {
  const [params, change] = useAddress();
  const domains = useQuery('GET /api/domains', may('domains:read') ? {} : undefined);
  const [domain, stack] = [params.get('domain') ?? '', params.get('stack') ?? ''];
  const isStack = params.get('of') === 'stack';
  const isUnlimited = me.value?.domains === null;
  const part: Part = isStack ? { stack: stack.trim() } : domain === '' ? {} : { domain };
  const isChosen = !isStack || stack.trim() !== '';
  const whats = [
    { value: 'all', label: isUnlimited ? 'Everything' : 'Everything of your hosts' },
    ...(domains.data ?? []).map(({ host }) => ({ value: `domain ${host}`, label: host })),
    ...(isUnlimited ? [{ value: 'domain *', label: 'Any host' }] : []),
    { value: 'stack', label: 'A stack …' },
  ];
  return (
    <Page title="Export">
      <p class="muted">
        The files say what there is: domains, collections, endpoints with their code, services. Secrets,
        versions, logs and keys of callers are not in them, so it is no backup.{' '}
        {may('endpoints:write') && (
          <>
            An <Link href="/ui/apply">apply</Link> of them changes nothing.
          </>
        )}
      </p>
      <div class="filters">
        <SelectField
          label="What"
          options={whats}
          value={isStack ? 'stack' : domain === '' ? 'all' : `domain ${domain}`}
          onChange={(what) => {
            const [kind, host] = what.split(' ', 2);
            change({ domain: host, stack: undefined, of: kind === 'stack' ? kind : undefined });
          }}
        />
        {isStack && (
          <TextField
            label="Stack"
            placeholder="shop"
            value={stack}
            onInput={(name) => change({ stack: name }, true)}
          />
        )}
        <Button
          look="primary"
          isDisabled={!isChosen}
          onClick={async () =>
            saveFile(
              `${domain || stack || 'edge'}.zip`,
              await getFile('GET /api/export', { query: part }, ZIP),
              ZIP,
            )
          }
        >
          Download a ZIP
        </Button>
      </div>
      {isChosen && <Files key={`${part.domain} ${part.stack}`} part={part} />}
      {part.domain !== undefined && <Documents domain={part.domain} />}
    </Page>
  );
}

/** Read only when somebody wants to see it: it may be large. */
function Files({ part }: { readonly part: Part }) {
  const [isShown, setShown] = useState(false);
  const result = useQuery('GET /api/export', isShown ? { query: part } : undefined, { isUnannounced: true });
  return (
    <section class="stack tight" aria-labelledby="files">
      <h2 id="files">Files</h2>
      {isShown ? (
        <Loaded result={result} lines={8}>
          {({ files }) => <FileList files={Object.entries(files)} />}
        </Loaded>
      ) : (
        <div class="actions">
          <Button onClick={() => setShown(true)}>Show them</Button>
        </div>
      )}
    </section>
  );
}

function FileList({ files }: { readonly files: readonly (readonly [path: string, content: Content])[] }) {
  return (
    <>
      <p class="muted">{files.length === 1 ? 'One file' : `${count(files.length)} files`}</p>
      <FirstOf all={files}>
        {(shown) => (
          <ul class="card details-list">
            {shown.map(([path, content]) => (
              <li key={path}>
                {typeof content === 'string' ? (
                  <OneFile path={path} text={content} isOpen={path === 'edge.yaml'} />
                ) : (
                  <BinaryFile path={path} content={content} />
                )}
              </li>
            ))}
          </ul>
        )}
      </FirstOf>
    </>
  );
}

function BinaryFile({ path, content }: { readonly path: string; readonly content: Bytes }) {
  return (
    <div class="summary">
      <span class="what mono">
        <Visible text={path} isOneLine />
      </span>
      <Binary path={path} content={content} />
    </div>
  );
}

interface OneFileProps {
  readonly path: string;
  readonly text: string;
  readonly isOpen: boolean;
}

function OneFile({ path, text, isOpen: isOpenAtFirst }: OneFileProps) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <span class="what mono">
          <Visible text={path} isOneLine />
        </span>
        <span class="muted small">{bytes(new TextEncoder().encode(text).length)}</span>
      </summary>
      {isOpen && (
        <div class="stack tight">
          <Columns>
            <Visible text={text} />
          </Columns>
        </div>
      )}
    </details>
  );
}
