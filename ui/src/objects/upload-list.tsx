/** How far uploads to a storage are. */
import { Button } from '../base/controls.js';
import { bytes } from '../base/text.js';
import { cancelUpload, clearUploads, hasEnded, tryAgain, type Upload, uploads } from './uploads.js';

export function UploadList({ service }: { readonly service: string }) {
  const shown = uploads.value.filter((one) => one.service === service);
  if (shown.length === 0) return null;
  const ended = shown.filter(hasEnded).length;
  return (
    <section class="card" aria-label="Uploads">
      <header>
        <h2 aria-live="polite">
          {ended < shown.length
            ? `Uploading ${shown.length - ended} of ${shown.length}`
            : `${shown.filter(({ state }) => state === 'done').length} of ${shown.length} uploaded`}
        </h2>
        {ended > 0 && (
          <Button isSmall onClick={() => clearUploads(service)}>
            Clear
          </Button>
        )}
      </header>
      <ul class="uploads">
        {shown.map((one) => (
          <UploadRow key={one.id} upload={one} />
        ))}
      </ul>
    </section>
  );
}

const SAID = { waiting: 'waiting', done: 'uploaded', failed: 'failed' };

function UploadRow({ upload: { id, key, size, part, state, error } }: { readonly upload: Upload }) {
  return (
    <li>
      <div class="row">
        <span class="name">{key}</span>
        <span class="muted small number">
          {bytes(size)}, {state === 'sending' ? `${Math.floor(part * 100)} %` : SAID[state]}
        </span>
        {state === 'failed' && (
          <Button isSmall label={`Try again to upload ${key}`} onClick={() => tryAgain(id)}>
            Try again
          </Button>
        )}
        {(state === 'sending' || state === 'waiting') && (
          <Button isSmall label={`Cancel ${key}`} onClick={() => cancelUpload(id)}>
            Cancel
          </Button>
        )}
      </div>
      {state === 'sending' && <progress value={part} max={1} aria-label={`Upload of ${key}`} />}
      {error && (
        <p class="bad-text small">
          {error.message}
          {error.requestId !== undefined && (
            <>
              {' '}
              Request <code>{error.requestId}</code>
            </>
          )}
        </p>
      )}
    </li>
  );
}
