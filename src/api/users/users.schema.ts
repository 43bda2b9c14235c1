/** Schemas of users. */
import { Type } from '@sinclair/typebox';
import { ROLES } from '../../model/permission.js';
import { Hosts, Id, Name, nullable, oneOf, Timestamp } from '../route/schemas.js';

export const Email = Type.String({ format: 'email-address', maxLength: 254 });
/** 12 characters or more, as OWASP has it for passwords that are the only factor. */
export const NewPassword = Type.String({ format: 'text', minLength: 12, maxLength: 1_024 });

export const UserView = Type.Object(
  {
    id: Id,
    email: Type.String(),
    name: Name,
    role: oneOf(ROLES),
    domains: Hosts,
    issuer: nullable(
      Type.String({
        description: 'The provider of OpenID Connect with which they sign in; null: with a password',
      }),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'User' },
);

export const NewUserBody = Type.Object({
  email: Email,
  name: Name,
  password: NewPassword,
  role: oneOf(ROLES),
  domains: Type.Optional(Hosts),
});

export const UserChange = Type.Object({
  email: Type.Optional(Email),
  name: Type.Optional(Name),
  password: Type.Optional(NewPassword),
  current_password: Type.Optional(
    Type.String({ maxLength: 1_024, description: 'Of whoever changes their own password' }),
  ),
  role: Type.Optional(oneOf(ROLES)),
  domains: Type.Optional(Hosts),
});
