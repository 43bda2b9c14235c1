/**
 * Reads multipart forms: files are streamed to disk, fields are validated by the schema of the route. `FilePart` in a
 * schema marks parts that are files.
 */
import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import { type TObject, Type } from '@sinclair/typebox';
import type { ParameterizedContext } from 'koa';
import multer, { MulterError, type StorageEngine } from 'multer';
import { AppError, toError } from '../../errors.js';
import { describeProblem } from '../../model/problems.js';
import { coercingCheckOf } from '../../model/schema-check.js';
import { counting, type SpoolPlace } from '../../util/spool-room.js';
import { uploadsFolder } from '../../util/uploads.js';
import { warnOfUnknown } from './unknown-members.js';

/** An uploaded file; it is deleted once the request has been handled. */
export interface FormFile {
  readonly path: string;
  readonly size: number;
  /** Deletes it before that. */
  remove(): Promise<void>;
}

/** The schema of a part that is a file. */
export const FilePart = Type.Unsafe<FormFile>({ type: 'string', format: 'binary' });

/** A parsed form. */
export interface ReadForm {
  /** Fields and files by the names of their parts. */
  readonly parts: Record<string, unknown>;
  /** Warnings about ignored unknown fields. */
  readonly warnings: readonly string[];
  /** Removes the files. */
  remove(): Promise<void>;
}

export interface FileLimit {
  readonly bytes: number;
  /** The setting that defines it. */
  readonly setting: string;
}

export interface FormOptions {
  readonly dataDir: string;
  /** The limit of one file. */
  readonly limit: FileLimit;
  /** Most files; by default the number of file parts in the schema. */
  readonly maxFiles?: number;
  /** Takes the place that its files have on the disk, until all of them are deleted. @throws AppError */
  readonly begin: () => SpoolPlace;
}

export type FormReader = (context: ParameterizedContext, options: FormOptions) => Promise<ReadForm>;

const FIELD_LIMIT_BYTES = 65_536;
const MAX_FIELDS = 16;
/** Allowance for boundaries, headers of parts, and fields, besides the file. */
const FRAME_BYTES = MAX_FIELDS * FIELD_LIMIT_BYTES;

/** Creates a reader of forms with this schema. */
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
    const place = options.begin();
    const received = await receive(context, options.maxFiles ?? files.length, options, place).catch(
      (thrown: unknown) => {
        place.end();
        throw thrown;
      },
    );
    const remove = async () => {
      await Promise.all(received.files.map(({ path }) => rm(path, { force: true })));
      place.end();
    };
    try {
      const notFile = files.find((name) => Object.hasOwn(received.fields, name));
      if (notFile !== undefined) {
        throw new AppError('invalid_input', `form.${notFile}: must be a file: a part with a file name`);
      }
      const names = [...Object.keys(received.fields), ...received.files.map(({ fieldname }) => fieldname)];
      const unknown = names.filter((name) => !Object.hasOwn(schema.properties, name));
      // Checked first: a misspelt part explains why another is missing.
      const warnings = warnOfUnknown('form', unknown, Object.keys(schema.properties));
      const problem = checkFields(received.fields);
      if (problem) throw new AppError('invalid_input', describeProblem('form', problem));
      return {
        parts: { ...received.fields, ...filesByName(received.files, files, required, remove) },
        warnings,
        remove,
      };
    } catch (thrown) {
      await remove();
      throw thrown;
    }
  };
}

function requireForm(context: ParameterizedContext, limit: FileLimit): void {
  const type = context.request.is('multipart/form-data');
  // `is` returns null without a body, false for another type.
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

interface ReceivedForm {
  readonly fields: Record<string, unknown>;
  readonly files: readonly Express.Multer.File[];
}

/** Receives the whole form. On failure, all files are deleted. */
async function receive(
  { req, res }: ParameterizedContext,
  maxFiles: number,
  { dataDir, limit }: FormOptions,
  place: SpoolPlace,
): Promise<ReceivedForm> {
  const folder = await uploadsFolder(dataDir);
  const take = multer({
    storage: storageIn(folder, place),
    limits: {
      files: maxFiles,
      fileSize: limit.bytes,
      fields: MAX_FIELDS,
      fieldSize: FIELD_LIMIT_BYTES,
      fieldNestingDepth: 0,
    },
  }).any();
  // multer is made for Express, but uses only what Node itself provides, and these two members for its results.
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

/** Files in a folder, whose bytes are counted as they arrive. */
function storageIn(folder: string, place: SpoolPlace): StorageEngine {
  const disk = multer.diskStorage({ destination: (_request, _file, use) => use(null, folder) });
  return {
    _handleFile: (request, file, done) => {
      const counted = counting((bytes) => place.take(bytes));
      // The storage may only find that the stream was destroyed.
      let failure: Error | undefined;
      pipeline(file.stream, counted, (error) => {
        failure = error ?? undefined;
      });
      Object.defineProperty(file, 'stream', { configurable: true, value: counted });
      disk._handleFile(request, file, (error: unknown, info) => done(error && (failure ?? error), info));
    },
    _removeFile: (request, file, done) => disk._removeFile(request, file, done),
  };
}

function filesByName(
  received: readonly Express.Multer.File[],
  names: readonly string[],
  required: readonly string[],
  remove: () => Promise<void>,
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
    files[fieldname] = { path, size, remove };
  }
  const missing = names.find((name) => required.includes(name) && !files[name]);
  if (missing !== undefined) {
    throw new AppError('invalid_input', `form.${missing}: is required, a part with a file and its name`);
  }
  return files;
}

function formError(thrown: unknown, limit: FileLimit): Error {
  const error = toError(thrown);
  if (error instanceof AppError) return error;
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
