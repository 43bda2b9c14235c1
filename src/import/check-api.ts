/** Final validation of an imported API: that it can be stored. */
import { AppError } from '../errors.js';
import { textProblem } from '../model/formats.js';
import type { ImportedEndpoint } from '../model/imported-parts.js';
import { storable } from '../util/text.js';
import type { ImportedApi } from './imported-api.js';

/** Source code of one import, characters: the parent process holds it in memory. */
const CODE_LIMIT = 64 * 1024 * 1024;

/**
 * Returns the API with warnings and problems that can be stored.
 * @param code of the error
 * @throws AppError when it has too much code, or text that cannot be stored, naming the operation
 */
export function checkApi(api: ImportedApi, code: 'invalid_spec' | 'invalid_bundle'): ImportedApi {
  const total = api.endpoints.reduce((sum, endpoint) => sum + codeLength(endpoint), 0);
  if (total > CODE_LIMIT) {
    throw new AppError(
      code,
      `The handlers have ${total} characters in total, more than ${CODE_LIMIT}; split the import`,
    );
  }
  const require = (label: string, text: string | null) => {
    const problem = textProblem(text ?? '');
    if (problem !== undefined) throw new AppError(code, `${storable(label)} ${problem}`);
  };
  require('The title', api.title);
  require('The description', api.description);
  for (const { name, method, path, description, generatedCode, handler } of api.endpoints) {
    const operation = `${method} ${path}`;
    require(`${operation}: the path`, path);
    require(`${operation}: the name`, name);
    require(`${operation}: the description`, description);
    require(`${operation}: the generated handler`, generatedCode);
    require(`${operation}: the name of the handler's file`, handler?.file ?? null);
    require(`${operation}: the handler`, handler?.code ?? null);
  }
  return {
    ...api,
    // They may quote invalid text.
    warnings: api.warnings.map(({ kind, text }) => ({ kind, text: storable(text) })),
    problems: api.problems.map(({ name, handler, message }) => ({
      name: name && storable(name),
      handler: handler && storable(handler),
      message: storable(message),
    })),
  };
}

/** Characters of an endpoint's long texts. */
export function codeLength({ generatedCode, handler, description, validate }: ImportedEndpoint): number {
  return [generatedCode, handler?.code, description, validate].reduce(
    (sum, text) => sum + (text?.length ?? 0),
    0,
  );
}
