/** Limits of sources, and of what is imported and applied. */
import { integer } from './setting.js';

export const IMPORTS = {
  SPEC_LIMIT_BYTES: integer(
    32 * 1024 * 1024,
    1024,
    268_435_456,
    'Largest OpenAPI document that can be imported, bytes.',
    '32 MiB',
  ),
  BUNDLE_LIMIT_BYTES: integer(
    64 * 1024 * 1024,
    1024,
    4_294_967_295,
    'Largest ZIP bundle that can be imported, bytes.',
    '64 MiB',
  ),
  BUNDLE_UNPACKED_LIMIT_BYTES: integer(
    256 * 1024 * 1024,
    1024,
    4_294_967_295,
    'Largest uncompressed size of a bundle, bytes.',
    '256 MiB',
  ),
  SOURCE_FILES_LIMIT: integer(
    1_000,
    1,
    10_000,
    'Most files and folders that a handler has beside its code; together they have at most API_BODY_LIMIT_BYTES.',
  ),
  BUNDLE_ENTRIES_LIMIT: integer(10_000, 1, 65_535, 'Most files and folders in a bundle.'),
  IMPORT_OPERATIONS_LIMIT: integer(5_000, 1, 100_000, 'Most operations in one import.'),
  IMPORT_READ_TIMEOUT_MS: integer(
    30_000,
    100,
    3_600_000,
    'Time limit for reading one document or bundle, milliseconds.',
  ),
  IMPORT_READ_MEMORY_MB: integer(
    1024,
    64,
    1_048_576,
    'Heap of the process that reads one document or bundle, MiB.',
  ),
  IMPORTS_QUEUED_LIMIT: integer(
    32,
    1,
    10_000,
    'Imports and plans of one user, or of `API_KEY`, that have not been read yet. More are refused.',
  ),
  IMPORTS_SPOOLED_LIMIT_BYTES: integer(
    1024 * 1024 * 1024,
    1024,
    1024 ** 4,
    'What imports and plans that have not been read yet may have on the disk of one `web`, bytes; several ones of one user half of it. One of each user is let in beyond it.',
    '1 GiB',
  ),
  IMPORT_WAIT_MS: integer(
    600_000,
    1,
    3_600_000,
    'How long an import request waits until its handlers are compiled and started before it answers 504, milliseconds.',
  ),
} as const;

export const APPLIES = {
  APPLY_WAIT_MS: integer(
    600_000,
    1,
    3_600_000,
    'How long a request waits for its apply before it answers 202, while the apply continues, milliseconds.',
  ),
  APPLIES_KEPT_DAYS: integer(
    90,
    1,
    36_500,
    'How long applies are kept after they have ended, with what their rollback needs, days.',
  ),
  APPLIES_KEPT_MB: integer(
    1_024,
    1,
    1_048_576,
    'What the ended applies of one user may take in PostgreSQL, with what their rollback needs, MiB: beyond it, the oldest go. The newest one stays.',
  ),
} as const;
