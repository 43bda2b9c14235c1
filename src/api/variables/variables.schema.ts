/** Variables and secrets as the API takes and shows them. */
import { Type } from '@sinclair/typebox';
import { Id, nullable, oneOf, Timestamp } from '../route/schemas.js';

export const Variables = Type.Record(Type.String(), Type.String({ format: 'text' }), {
  title: 'Variables',
  description: 'Values by name',
});

export const SetVariables = Type.Object(
  {},
  {
    propertyNames: { type: 'string', format: 'variable-name' },
    additionalProperties: Type.String({ format: 'text' }),
    description: 'Values by name',
  },
);

export const ChangeVariables = Type.Object(
  {},
  {
    propertyNames: { type: 'string', format: 'variable-name' },
    additionalProperties: nullable(Type.String({ format: 'text' })),
    description: 'Values by name; null deletes a variable, and those that are not named stay',
  },
);

export const SecretParams = Type.Object({
  id: Id,
  name: Type.String({ format: 'variable-name', description: 'Name of the secret' }),
});

export const InstallationSecretParams = Type.Pick(SecretParams, ['name']);

export const SetSecret = Type.Object({
  value: Type.String({ format: 'text', description: 'It is never shown again' }),
});

export const SecretView = Type.Object(
  {
    name: Type.String(),
    updated_at: Timestamp,
    actor: nullable(
      Type.Record(Type.String(), Type.Unknown(), { description: 'Who set it; null: not known' }),
    ),
  },
  { title: 'Secret' },
);

export const SecretSet = Type.Object({ name: Type.String() }, { title: 'SecretSet' });

export const SecretDeleted = Type.Object(
  { name: Type.String(), deleted: Type.Literal(true) },
  { title: 'SecretDeleted' },
);

export const EnvironmentEntry = Type.Object(
  {
    name: Type.String(),
    secret: Type.Boolean(),
    scope: oneOf(['domain', 'collection', 'endpoint'], { description: 'Where it is set' }),
    owner_id: Type.String({ format: 'uuid', description: 'The domain, collection or endpoint' }),
    updated_at: Timestamp,
  },
  { title: 'EnvironmentEntry' },
);
