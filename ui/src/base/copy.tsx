/** Copying, and values that are shown to be copied. */
import { useRef, useState } from 'preact/hooks';
import { Button, Field } from './controls.js';

/**
 * Copies a text.
 * @param near what one has pressed: in an open dialog, all beside it can have no selection
 * @returns whether the browser has let it
 */
export async function copyText(text: string, near: HTMLElement): Promise<boolean> {
  const isDone = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  if (isDone) return true;
  // Without TLS, browsers have no clipboard for pages; what is selected can still be copied.
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  near.after(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  near.focus();
  return isCopied;
}

export function CopyField({
  label,
  value,
  hint,
}: {
  readonly label: string;
  readonly value: string;
  readonly hint?: string;
}) {
  const input = useRef<HTMLInputElement>(null);
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    if (input.current) setCopied(await copyText(value, input.current));
    input.current?.select();
  };
  return (
    <Field label={label} hint={hint}>
      {(attributes) => (
        <div class="copy">
          <input ref={input} class="input mono" readOnly {...attributes} value={value} />
          <Button onClick={copy}>{isCopied ? 'Copied' : 'Copy'}</Button>
        </div>
      )}
    </Field>
  );
}
