/**
 * Reads multipart forms: files go to disk as they come, fields are checked by the schema of the route. A schema says
 * which parts are files by `FilePart`.
 */
import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type TObject, Type } from '@sinclair/typebox';
import multer, { MulterError } from 'multer';
import { AppError, toError } from '../errors.js';
import { uploadsFolder } from '../uploads.js';
import { coercingCheckOf, describeProblem } from '../validation/check.js';
import type { ApiContext } from './context.js';

/** A file that was sent; it is gone once the request has been handled. */
export interface FormFile {
  readonly path: string;
  readonly size: number;
}

/** The schema of a part that is a file. */
export const FilePart = Type.Unsafe<FormFile>({ type: 'string', format: 'binary' });

/** A form that was read. */
export interface ReadForm {
  /** Fields and files by the names of their parts. */
  readonly parts: Record<string, unknown>;
  /** Names of fields the form does not have; they were ignored. */
  readonly unknown: readonly string[];
  /** Removes the files. */
  remove(): Promise<void>;
}

export interface FileLimit {
  readonly bytes: number;
  /** Name of the setting it comes from. */
  readonly setting: string;
}

export interface FormOptions {
  readonly dataDir: string;
  /** Of one file. */
  readonly limit: FileLimit;
  /** As many as the schema has parts for, unless given. */
  readonly maxFiles?: number;
}

export type FormReader = (context: ApiContext, options: FormOptions) => Promise<ReadForm>;

const FIELD_LIMIT_BYTES = 65_536;
const MAX_FIELDS = 16;
/** Boundaries, headers of parts, and fields: what a form has beside its file. */
const FRAME_BYTES = MAX_FIELDS * FIELD_LIMIT_BYTES;

/** Makes the reader of forms with this schema. */
export function formReader(schema: TObject): FormReader {
  const properties = Object.entries(schema.properties);
  const files = properties.filter(([, part]) => part['format'] === 'binary').map(([name]) => name);
  const fields = Object.fromEntries(properties.filter(([name]) => !files.includes(name)));
  const required = schema.required ?? [];
  const checkFields = coercingCheckOf({
    type: 'object',
    properties: fields,
    required: required.filter((name) => !files.includes(name)),
  });

  return async (context, options) => {
    requireForm(context, options.limit);
    const received = await receive(context, options.maxFiles ?? files.length, options);
    const remove = async () => {
      await Promise.all(received.files.map(({ path }) => rm(path, { force: true })));
    };
    try {
      const notFile = files.find((name) => Object.hasOwn(received.fields, name));
      if (notFile !== undefined) {
        throw new AppError('invalid_input', `form.${notFile}: must be a file: a part with a file name`);
      }
      const problem = checkFields(received.fields);
      if (problem) throw new AppError('invalid_input', describeProblem('form', problem));
      return {
        parts: { ...received.fields, ...filesByName(received.files, files, required) },
        unknown: Object.keys(received.fields).filter((name) => !Object.hasOwn(fields, name)),
        remove,
      };
    } catch (thrown) {
      await remove();
      throw thrown;
    }
  };
}

function requireForm(context: ApiContext, limit: FileLimit): void {
  const type = context.request.is('multipart/form-data');
  // `is` answers null when there is no body at all, false when it is of another type.
  if (type === null || context.request.length === 0) {
    throw new AppError('invalid_input', 'body: is required, a form (multipart/form-data)');
  }
  if (type === false) {
    throw new AppError(
      'unsupported_media_type',
      `The body must be sent as multipart/form-data, not ${context.request.type || 'without a Content-Type'}`,
    );
  }
  if ((context.request.length ?? 0) > limit.bytes + FRAME_BYTES) throw tooLarge(limit);
}

interface Received {
  readonly fields: Record<string, unknown>;
  readonly files: readonly Express.Multer.File[];
}

/** Takes in the whole form. When it fails, no file is left. */
async function receive(
  { req, res }: ApiContext,
  maxFiles: number,
  { dataDir, limit }: FormOptions,
): Promise<Received> {
  const folder = await uploadsFolder(dataDir);
  const take = multer({
    storage: multer.diskStorage({ destination: (_request, _file, use) => use(null, folder) }),
    limits: {
      files: maxFiles,
      fileSize: limit.bytes,
      fields: MAX_FIELDS,
      fieldSize: FIELD_LIMIT_BYTES,
      fieldNestingDepth: 0,
    },
  }).any();
  // It was made for Express, and uses of the request what Node itself gives, and these two to answer in.
  const request = req as IncomingMessage & { body?: object; files?: readonly Express.Multer.File[] };
  await new Promise<void>((resolve, reject) => {
    const run = take as unknown as (
      request: IncomingMessage,
      response: ServerResponse,
      done: (error?: unknown) => void,
    ) => void;
    run(request, res, (error) => (error ? reject(formError(error, limit)) : resolve()));
  });
  return { fields: { ...request.body }, files: request.files ?? [] };
}

function filesByName(
  received: readonly Express.Multer.File[],
  names: readonly string[],
  required: readonly string[],
): Record<string, FormFile> {
  const files: Record<string, FormFile> = {};
  for (const { fieldname, path, size } of received) {
    if (!names.includes(fieldname)) {
      throw new AppError(
        'invalid_input',
        `form.${fieldname}: is no file of this form; it has ${names.join(', ')}`,
      );
    }
    if (files[fieldname])
      throw new AppError('invalid_input', `form.${fieldname}: must be one file, not several`);
    files[fieldname] = { path, size };
  }
  const missing = names.find((name) => required.includes(name) && !files[name]);
  if (missing !== undefined) {
    throw new AppError('invalid_input', `form.${missing}: is required, a part with a file and its name`);
  }
  return files;
}

function formError(thrown: unknown, limit: FileLimit): Error {
  const error = toError(thrown);
  if (error instanceof MulterError) {
    if (error.code === 'LIMIT_FILE_SIZE') return tooLarge(limit);
    if (error.code === 'LIMIT_FILE_COUNT') {
      return new AppError('invalid_input', 'form: has more files than this form takes', {}, { cause: error });
    }
    const place = error.field === undefined ? 'form' : `form.${error.field}`;
    return new AppError('invalid_input', `${place}: ${error.message}`, {}, { cause: error });
  }
  // The disk is full, for example.
  if ('syscall' in error) return error;
  return new AppError(
    'invalid_input',
    `body: cannot be read as a form: ${error.message}`,
    {},
    { cause: error },
  );
}

function tooLarge({ bytes, setting }: FileLimit): AppError {
  return new AppError('body_too_large', `The file is larger than ${bytes} bytes (${setting})`);
}
