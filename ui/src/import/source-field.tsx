/** A document or a ZIP: dropped, chosen, or pasted. */
import { Button, TextArea } from '../base/controls.js';
import { Drop } from '../base/drop.js';
import { bytes } from '../base/text.js';
import { failed } from '../base/toasts.js';

interface SourceFieldProps {
  readonly text: string;
  readonly bundle: File | undefined;
  /** What the API says of the text. */
  readonly problem: string | undefined;
  readonly onText: (text: string) => void;
  readonly onBundle: (file: File | undefined) => void;
}

/** The beginning of every ZIP. */
const ZIP_MAGIC = 'PK';

export function SourceField({ text, bundle, problem, onText, onBundle }: SourceFieldProps) {
  const take = async (file: File) => {
    if ((await file.slice(0, ZIP_MAGIC.length).text()) === ZIP_MAGIC) onBundle(file);
    else onText(await file.text());
  };
  return (
    <>
      <Drop
        label="Document or ZIP"
        action="Choose a file"
        accept=".yaml,.yml,.json,.zip"
        onFiles={([file]) => {
          if (file) take(file).catch(failed);
        }}
      >
        {bundle ? (
          <span>
            <strong>{bundle.name}</strong> <span class="muted">{bytes(bundle.size)}</span>{' '}
            <Button isSmall look="plain" onClick={() => onBundle(undefined)}>
              Remove
            </Button>
          </span>
        ) : (
          <span class="muted">Drop an OpenAPI document, or a ZIP with one and its handlers</span>
        )}
      </Drop>
      {!bundle && (
        <TextArea
          label="Document"
          hint="OpenAPI 3 or Swagger 2.0, YAML or JSON. Paste it here, if it is in no file."
          problem={problem}
          rows={text === '' ? 5 : 12}
          value={text}
          onInput={onText}
          placeholder={'openapi: 3.1.0\ninfo: …'}
        />
      )}
    </>
  );
}
