/** The table `users`: who may sign in, and what they may do. */
import { AppError } from '../errors.js';
import type { Role } from '../model/permission.js';
import { nextUpdatedAt, type Store, transaction, violatedConstraint } from './database.js';

/** A row. */
export interface User {
  readonly id: string;
  /** In lower case. */
  readonly email: string;
  readonly name: string;
  readonly password_hash: string | null;
  readonly role: Role;
  /** Hosts; none: everywhere. */
  readonly domains: readonly string[];
  readonly issuer: string | null;
  readonly subject: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type NewUser = Pick<User, 'email' | 'name' | 'password_hash' | 'role' | 'domains'>;

export async function listUsers({ knex }: Store): Promise<User[]> {
  return knex<User>('users').orderBy(['created_at', 'id']);
}

export async function findUser({ knex }: Store, id: string): Promise<User | undefined> {
  return knex<User>('users').where({ id }).first();
}

export async function userByEmail({ knex }: Store, email: string): Promise<User | undefined> {
  return knex<User>('users').where({ email: email.toLowerCase() }).first();
}

/** The user by what an issuer of OpenID Connect calls them. */
export async function userBySubject(
  { knex }: Store,
  issuer: string,
  subject: string,
): Promise<User | undefined> {
  return knex<User>('users').where({ issuer, subject }).first();
}

export async function hasUsers({ knex }: Store): Promise<boolean> {
  return (await knex('users').first('id')) !== undefined;
}

/**
 * Adds a user. The first one must be an admin of everything: whoever closes an open API has to be able to open it.
 * @throws AppError email_taken, last_admin
 */
export async function createUser(store: Store, user: NewUser): Promise<User> {
  return namingEmail(() =>
    changingUsers(store, async (tx) => {
      const [created] = await tx
        .knex<User>('users')
        .insert({ ...user, domains: [...user.domains] } as never)
        .returning('*');
      if (!created) throw new Error('INSERT INTO users returned no row');
      return created;
    }),
  );
}

/**
 * Changes the given fields of a user who is from no provider. A new password ends the sessions of the user.
 * @returns undefined when there is no such user
 * @throws AppError email_taken, last_admin, provider_user
 */
export async function updateUser(
  store: Store,
  id: string,
  changes: Partial<NewUser>,
): Promise<User | undefined> {
  return namingEmail(() =>
    changingUsers(store, async (tx) => {
      const [updated] = await tx
        .knex<User>('users')
        .where({ id })
        .update({ ...changes, updated_at: nextUpdatedAt(tx) } as never)
        .returning('*');
      if (updated && updated.issuer !== null)
        throw new AppError(
          'provider_user',
          `${updated.email} signs in with ${updated.issuer}: what is changed there counts here with the next sign-in`,
        );
      if (updated && changes.password_hash !== undefined)
        await tx.knex('sessions').where({ user_id: id }).delete();
      return updated;
    }),
  );
}

/** What a provider of OpenID Connect says about somebody. */
export type ProviderUser = Omit<NewUser, 'password_hash'> & {
  readonly issuer: string;
  readonly subject: string;
};

/**
 * The user of somebody who signs in with a provider: made with the first sign-in, and as the provider says with each.
 * Who they are is said by issuer and subject alone: nobody gets the user of somebody else by having the same email.
 * @throws AppError email_taken, last_admin
 */
export async function signInUser(store: Store, { issuer, subject, ...said }: ProviderUser): Promise<User> {
  return namingEmail(() =>
    changingUsers(store, async (tx) => {
      const values = { ...said, domains: [...said.domains] };
      const users = tx.knex<User>('users');
      const [updated] = await users
        .clone()
        .where({ issuer, subject })
        .update({ ...values, updated_at: nextUpdatedAt(tx) } as never)
        .returning('*');
      if (updated) return updated;
      const [created] = await users.insert({ ...values, issuer, subject } as never).returning('*');
      if (!created) throw new Error('INSERT INTO users returned no row');
      return created;
    }),
  );
}

/**
 * Deletes a user with sessions and tokens.
 * @returns false when there is no such user
 * @throws AppError last_admin
 */
export async function deleteUser(store: Store, id: string): Promise<boolean> {
  return changingUsers(store, async (tx) => (await tx.knex('users').where({ id }).delete()) > 0);
}

/** One change at a time, after which there is still an admin of everything who can sign in with a password. */
async function changingUsers<T>(store: Store, change: (tx: Store) => Promise<T>): Promise<T> {
  return transaction(store, async (tx) => {
    await tx.knex.raw("SELECT pg_advisory_xact_lock(hashtextextended('users', 0))");
    const result = await change(tx);
    const admin = await tx
      .knex<User>('users')
      .where({ role: 'admin' })
      .whereRaw("domains = '{}'")
      .whereNotNull('password_hash')
      .first('id');
    if (!admin) {
      throw new AppError(
        'last_admin',
        'There must be a user with the role admin for all domains and a password; make another one first',
      );
    }
    return result;
  });
}

async function namingEmail<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (thrown) {
    if (violatedConstraint(thrown) !== 'users_email_unique') throw thrown;
    throw new AppError('email_taken', 'Another user has this email', {}, { cause: thrown });
  }
}
