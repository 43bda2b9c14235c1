/** Dialogs. Escape and a click beside them close them; the browser gives the focus back. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiError } from '../api/client.js';
import { toApiError } from '../api/query.js';
import { Button } from './controls.js';
import { ErrorNotice } from './notices.js';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly isWide?: boolean;
  readonly children: ComponentChildren;
}

export function Dialog({ title, onClose, isWide, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      class={`dialog${isWide ? ' wide' : ''}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      <div class="body">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

interface FormDialogProps extends DialogProps {
  /** What the button says that does it. */
  readonly action: string;
  readonly isDangerous?: boolean;
  readonly isDisabled?: boolean;
  /** Does it; the dialog closes when that has succeeded, and shows why it has failed. */
  readonly onSubmit: () => Promise<unknown>;
}

/** A dialog with a form, or with a question. */
export function FormDialog({
  children,
  action,
  isDangerous,
  isDisabled,
  onSubmit,
  ...dialog
}: FormDialogProps) {
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onSubmit();
      dialog.onClose();
    } catch (thrown) {
      setError(toApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog {...dialog}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        {children}
        {error && <ErrorNotice error={error} />}
        <footer>
          <Button onClick={dialog.onClose}>Cancel</Button>
          <Button
            isSubmit
            look={isDangerous ? 'danger' : 'primary'}
            isDisabled={isBusy || isDisabled === true}
          >
            {action}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
