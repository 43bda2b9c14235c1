/** Calls an operation, and shows what it answers. */
import { useRef, useState } from 'preact/hooks';
import { ApiError } from '../api/client.js';
import { toApiError } from '../api/query.js';
import { Button, Field, SelectField, TextArea, TextField } from '../base/controls.js';
import { useDraft } from '../base/draft.js';
import { ErrorNotice } from '../base/notices.js';
import { type Json, listOf, type Operation, objectOf, resolved, textOf } from './document.js';
import { exampleOf } from './example.js';
import { ReceivedView } from './received-view.js';
import { type CallInput, type CallResult, type Destination, pathOf, send } from './request.js';

interface CallFormProps {
  readonly document: Json;
  readonly operation: Operation;
  readonly destination: Destination;
}

export function CallForm({ document, operation, destination }: CallFormProps) {
  const { id, method, parameters, bodies } = operation;
  const place = destination.kind === 'host' ? destination.host : 'gateway';
  const [typed, setTyped] = useDraft<Omit<CallInput, 'files'>>(`call-${place}-${id}`, {
    parameters: {},
    body: exampleText(document, operation),
    mediaType: bodies[0]?.mediaType ?? '',
  });
  const [files, setFiles] = useState<CallInput['files']>({});
  const [received, setReceived] = useState<CallResult>();
  const [partial, setPartial] = useState<string>();
  const [error, setError] = useState<ApiError>();
  const running = useRef<AbortController | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);

  const submit = async () => {
    const abort = new AbortController();
    running.current = abort;
    setBusy(true);
    setError(undefined);
    setReceived(undefined);
    try {
      setReceived(await send(destination, operation, { ...typed, files }, abort.signal, setPartial));
    } catch (thrown) {
      if (!abort.signal.aborted) setError(shownError(thrown));
    }
    setPartial(undefined);
    setBusy(false);
  };
  const shown = parameters.filter(({ place }) => place !== 'cookie');
  const content = bodies.find(({ mediaType }) => mediaType === typed.mediaType);
  return (
    <section class="card pad stack" aria-labelledby="call">
      <h3 id="call">Call it</h3>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) void submit();
        }}
      >
        {shown.length > 0 && (
          <div class="settings">
            {shown.map(({ name, place, isRequired, schema }) => (
              <ParameterField
                key={`${place} ${name}`}
                name={name}
                isRequired={isRequired}
                values={listOf(objectOf(resolved(document, schema))['enum'])}
                value={typed.parameters[`${place} ${name}`] ?? ''}
                onInput={(value) =>
                  setTyped({ ...typed, parameters: { ...typed.parameters, [`${place} ${name}`]: value } })
                }
              />
            ))}
          </div>
        )}
        {bodies.length > 1 && (
          <SelectField
            label="Media type"
            options={bodies.map(({ mediaType }) => mediaType)}
            value={typed.mediaType}
            onChange={(mediaType) => setTyped({ ...typed, mediaType })}
          />
        )}
        {content && (
          <>
            <TextArea
              label={content.mediaType === 'multipart/form-data' ? 'Fields, as JSON' : 'Body'}
              rows={8}
              value={typed.body}
              onInput={(body) => setTyped({ ...typed, body })}
            />
            {fileNames(document, content.schema).map((name) => (
              <Field key={name} label={`File: ${name}`}>
                {(attributes) => (
                  <input
                    type="file"
                    class="input"
                    {...attributes}
                    onChange={({ currentTarget: { files: chosen } }) =>
                      setFiles(chosen?.[0] ? { ...files, [name]: chosen[0] } : files)
                    }
                  />
                )}
              </Field>
            ))}
          </>
        )}
        <div class="actions">
          <Button isSubmit look={method === 'DELETE' ? 'danger' : 'primary'} isDisabled={isBusy}>
            {`Send ${method}`}
          </Button>
          {isBusy && <Button onClick={() => running.current?.abort()}>Stop</Button>}
          <code class="muted small sent">
            {destination.kind === 'host' && destination.base}
            {pathOf(operation, { ...typed, files })}
          </code>
        </div>
      </form>
      {destination.kind === 'host' && (
        <p class="small muted">
          The gateway sends it to the newest version of the endpoint, deployed or not, without policies.
        </p>
      )}
      {error && <ErrorNotice error={error} />}
      {partial !== undefined && !received && <pre class="code-block answer-body">{partial}</pre>}
      {received && <ReceivedView received={received} />}
    </section>
  );
}

interface ParameterFieldProps {
  readonly name: string;
  readonly isRequired: boolean;
  readonly values: readonly unknown[];
  readonly value: string;
  readonly onInput: (value: string) => void;
}

function ParameterField({ name, isRequired, values, value, onInput }: ParameterFieldProps) {
  if (values.length > 0)
    return (
      <SelectField
        label={name}
        options={[{ value: '', label: isRequired ? 'Choose one' : 'Not given' }, ...values.map(String)]}
        value={value}
        onChange={onInput}
      />
    );
  return <TextField label={name} required={isRequired} autocomplete="off" value={value} onInput={onInput} />;
}

function exampleText(document: Json, { bodies, isBodyRequired }: Operation): string {
  const [body] = bodies;
  if (!body || !isBodyRequired) return '';
  const isForm = body.mediaType === 'multipart/form-data';
  if (!isForm && !/json/.test(body.mediaType)) return textOf(body.example);
  const example = body.example ?? exampleOf(document, body.schema);
  const files = new Set(fileNames(document, body.schema));
  const shown = isForm
    ? Object.fromEntries(Object.entries(objectOf(example)).filter(([name]) => !files.has(name)))
    : example;
  return JSON.stringify(shown, null, 2);
}

/** Members of a form that are files. */
function fileNames(document: Json, schema: unknown): string[] {
  const { properties } = objectOf(resolved(document, schema));
  return Object.entries(objectOf(properties)).flatMap(([name, member]) => {
    const one = objectOf(resolved(document, member));
    return one['format'] === 'binary' || one['contentMediaType'] !== undefined ? [name] : [];
  });
}

function shownError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (thrown instanceof SyntaxError)
    return new ApiError(
      `The fields are no JSON: ${thrown.message}`,
      'invalid_input',
      0,
      undefined,
      undefined,
      [],
    );
  if (thrown instanceof TypeError)
    return new ApiError('The gateway cannot be reached.', 'unreachable', 0, undefined, undefined, []);
  return thrown instanceof Error
    ? new ApiError(thrown.message, 'unexpected', 0, undefined, undefined, [])
    : toApiError(thrown);
}
