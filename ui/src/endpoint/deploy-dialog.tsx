/** Makes a version of the draft and has it serve. */
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { may } from '../api/session.js';
import { TextField } from '../base/controls.js';
import { FormDialog } from '../base/dialog.js';
import { done } from '../base/toasts.js';
import type { Endpoint } from '../generated/routes.js';
import { addressOf } from './address.js';
import type { Draft } from './code/draft.js';

interface DeployProps {
  readonly endpoint: Endpoint;
  readonly draft: Draft;
  readonly onClose: () => void;
}

export function DeployDialog({ endpoint, draft, onClose }: DeployProps) {
  const [message, setMessage] = useState('');
  const [percent, setPercent] = useState('100');
  const [, navigate] = useLocation();
  const isDirty = draft.isDirty.value;
  const isServing = endpoint.running;
  const deploy = async () => {
    const deployed = await draft.deploy(message, Number(percent));
    if (deployed === undefined || deployed === 'changed') navigate(addressOf(endpoint, 'code'));
    else if (Number(percent) === 100) done(`Version ${deployed.version} serves.`);
    else done(`Version ${deployed.version} serves ${percent} % of the requests.`);
  };
  return (
    <FormDialog title="Deploy" action="Deploy" onClose={onClose} onSubmit={deploy}>
      {isDirty && may('endpoints:write') && <p>What you have written is saved, compiled and started.</p>}
      <TextField
        label="What is new"
        hint="For the list of versions; it may stay empty."
        value={message}
        onInput={setMessage}
        autofocus
      />
      {isServing && (
        <TextField
          label="Percent of the requests"
          hint="The version that serves now keeps the rest."
          type="number"
          min={1}
          max={100}
          required
          value={percent}
          onInput={setPercent}
        />
      )}
    </FormDialog>
  );
}
