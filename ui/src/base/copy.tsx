/** A value that is shown to be copied. */
import { useRef, useState } from 'preact/hooks';
import { Button, Field } from './controls.js';

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
    input.current?.select();
    // Without TLS, browsers have no clipboard for pages; what is selected can still be copied.
    const isDone = await navigator.clipboard?.writeText(value).then(
      () => true,
      () => false,
    );
    setCopied(isDone === true || document.execCommand('copy'));
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
