/**
 * Dialogs. Escape closes them, and so does a click beside them as long as nothing has been typed. The focus goes back to
 * where it was.
 */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { giveFocusBack } from './focus.js';
import { Form, type FormProps } from './form.js';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly isWide?: boolean;
  readonly children: ComponentChildren;
}

export function Dialog({ title, onClose, isWide, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const isTyped = useRef(false);
  const isOver = useRef(false);
  // Before the next key or click, which is meant for the dialog.
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      isOver.current = true;
      dialog?.close();
      // The browser does it only for a dialog that is still there.
      requestAnimationFrame(() => giveFocusBack(before));
    };
  }, []);
  /** The browser closes it by itself when Escape is pressed again: it does not let a page keep people in a dialog. */
  const closed = () => {
    if (isOver.current) return;
    onClose();
    // Whoever opened it may want it to stay: what it asks for, or shows once, is needed.
    requestAnimationFrame(() => {
      if (!isOver.current && ref.current?.open === false) ref.current.showModal();
    });
  };
  return (
    <dialog
      ref={ref}
      class={`dialog${isWide ? ' wide' : ''}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClose={closed}
      onInput={() => {
        isTyped.current = true;
      }}
      onMouseDown={(event) => {
        if (event.target === ref.current && !isTyped.current) onClose();
      }}
    >
      <div class="body">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

interface FormDialogProps extends Omit<DialogProps, 'children'>, Omit<FormProps, 'onCancel'> {}

/** A dialog with a form, or with a question. It closes when what it asks for is done. */
export function FormDialog({ title, isWide, onClose, onSubmit, ...form }: FormDialogProps) {
  const submit = async () => {
    await onSubmit();
    onClose();
  };
  return (
    <Dialog title={title} onClose={onClose} {...(isWide !== undefined && { isWide })}>
      <Form {...form} onSubmit={submit} onCancel={onClose} />
    </Dialog>
  );
}
