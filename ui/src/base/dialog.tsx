/**
 * Dialogs. Escape closes them, and so does a click beside them; what has been typed is not lost unasked. The focus goes
 * back to where it was.
 */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Button } from './controls.js';
import { giveFocusBack } from './focus.js';
import { Form, type FormProps } from './form.js';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly isWide?: boolean | undefined;
  /** Whether what is typed is kept when it closes, or worth nothing: then nobody is asked. */
  readonly losesNothing?: boolean | undefined;
  readonly children: ComponentChildren;
}

export function Dialog({ title, onClose, isWide, losesNothing, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const [isAsking, setAsking] = useState(false);
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
  const leave = () => {
    if (isTyped.current && losesNothing !== true) setAsking((before) => !before);
    else onClose();
  };
  /** The browser closes it by itself when Escape is pressed again: it does not let a page keep people in a dialog. */
  const closed = () => {
    if (isOver.current) return;
    leave();
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
        leave();
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
        {isAsking && <Discarding onDiscard={onClose} onKeep={() => setAsking(false)} />}
      </div>
    </dialog>
  );
}

interface DiscardingProps {
  readonly onDiscard: () => void;
  readonly onKeep: () => void;
}

function Discarding({ onDiscard, onKeep }: DiscardingProps) {
  const notice = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    notice.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <div ref={notice} class="notice warn" role="alert">
      <span>What you have typed is not saved.</span>
      <Button isSmall onClick={onKeep}>
        Go on typing
      </Button>
      <Button isSmall look="danger" onClick={onDiscard}>
        Discard it
      </Button>
    </div>
  );
}

interface FormDialogProps extends Omit<DialogProps, 'children'>, Omit<FormProps, 'onCancel'> {}

/** A dialog with a form, or with a question. It closes when what it asks for is done. */
export function FormDialog({ title, isWide, losesNothing, onClose, onSubmit, ...form }: FormDialogProps) {
  const submit = async () => {
    await onSubmit();
    onClose();
  };
  return (
    <Dialog {...{ title, isWide, losesNothing, onClose }}>
      <Form {...form} onSubmit={submit} onCancel={onClose} />
    </Dialog>
  );
}
