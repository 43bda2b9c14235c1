/** Users: who may sign in, and what they may do. */
import { Type } from '@sinclair/typebox';
import { AppError, notFound, requireFound } from '../../errors.js';
import { hashPassword, isPassword } from '../../secrets/passwords.js';
import { createUser, deleteUser, findUser, listUsers, type User, updateUser } from '../../store/users.js';
import { countLogin } from '../access/login-limits.js';
import { requireRoleAtLeast } from '../access/principal.js';
import { presenter } from '../response/present.js';
import { defineRoute } from '../route/route.js';
import { Deleted, IdParams } from '../route/schemas.js';
import { NewUserBody, UserChange, UserView } from './users.schema.js';

const tag = 'Users';
const presentColumns = presenter(UserView);
const present = (user: User) => presentColumns({ ...user, domains: [...user.domains] });

export const userRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/users',
    permission: 'users:read',
    summary: 'List users',
    tag,
    data: Type.Array(UserView),
    handle: async (_request, { store }) => (await listUsers(store)).map(present),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/users',
    permission: 'users:write',
    summary: 'Add a user; the first one is an admin, and closes an API that was open',
    tag,
    status: 201,
    body: NewUserBody,
    data: UserView,
    errors: ['email_taken', 'last_admin'],
    handle: async ({ body, principal }, { store }) => {
      const { email, name, password, role, domains = [] } = body;
      requireRoleAtLeast(principal, role);
      const password_hash = await hashPassword(password);
      return present(
        await createUser(store, {
          ...{ email: email.toLowerCase(), name, password_hash, role },
          domains: hosts(domains),
        }),
      );
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/users/{id}',
    permission: 'users:read',
    isOpenToOwner: true,
    summary: 'Show a user',
    tag,
    params: IdParams,
    data: UserView,
    handle: async ({ params: { id } }, { store }) =>
      present(requireFound(await findUser(store, id), 'user', id)),
  }),

  defineRoute({
    method: 'PUT',
    path: '/api/users/{id}',
    permission: 'users:write',
    isOpenToOwner: true,
    summary:
      'Change the given fields of a user, or of oneself name and password; a new password ends their sessions',
    tag,
    params: IdParams,
    body: UserChange,
    data: UserView,
    errors: ['email_taken', 'last_admin', 'login_failed', 'too_many_logins', 'provider_user'],
    handle: async ({ params: { id }, body, principal, client }, { store }) => {
      const { password, current_password: current, domains, email, role, ...changes } = body;
      const before = requireFound(await findUser(store, id), 'user', id);
      const isAdmin = principal.permissions.has('users:write');
      if (!isAdmin && [domains, email, role].some((member) => member !== undefined))
        throw new AppError(
          'forbidden',
          'Without the permission users:write you can change only your name and password',
        );
      if (isAdmin) requireRoleAtLeast(principal, before.role, role);
      const isOwn = principal.user?.id === id;
      if (password !== undefined && isOwn && before.issuer === null) {
        // Whoever has got hold of a session does not guess the password with it.
        const succeeded = await countLogin(store, before.email, client.address);
        if (!(await isPassword(before.password_hash, current ?? '')))
          throw new AppError('login_failed', 'body.current_password: is not the password');
        await succeeded();
      }
      const updated = await updateUser(store, id, {
        ...changes,
        ...(email !== undefined && { email: email.toLowerCase() }),
        ...(role !== undefined && { role }),
        ...(domains !== undefined && { domains: hosts(domains) }),
        ...(password !== undefined && { password_hash: await hashPassword(password) }),
      });
      return present(requireFound(updated, 'user', id));
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/users/{id}',
    permission: 'users:write',
    summary: 'Delete a user, with sessions and tokens',
    tag,
    params: IdParams,
    data: Deleted,
    errors: ['last_admin'],
    handle: async ({ params: { id }, principal }, { store }) => {
      requireRoleAtLeast(principal, requireFound(await findUser(store, id), 'user', id).role);
      if (!(await deleteUser(store, id))) throw notFound('user', id);
      return { id, deleted: true as const };
    },
  }),
];

function hosts(domains: readonly string[]): string[] {
  return [...new Set(domains.map((host) => host.toLowerCase()))];
}
