/** The last look at an API that was read, whatever it was read from: what is wrong here could not be stored. */
import { AppError } from '../errors.js';
import { textProblem } from '../validation/formats.js';
import type { ImportedApi, ImportedEndpoint } from './imported-api.js';

/** All source code of one import, characters. Whoever takes it holds it in memory. */
const CODE_LIMIT = 64 * 1024 * 1024;

/**
 * The API as it can be stored.
 * @param code of the error
 * @throws AppError when it has too much code, or text that no database can hold, naming the operation
 */
export function checkedApi(api: ImportedApi, code: 'invalid_spec' | 'invalid_bundle'): ImportedApi {
  const total = api.endpoints.reduce((sum, endpoint) => sum + codeLength(endpoint), 0);
  if (total > CODE_LIMIT) {
    throw new AppError(
      code,
      `The handlers have ${total} characters in all, more than ${CODE_LIMIT}; import it in parts`,
    );
  }
  const require = (what: string, text: string | null) => {
    const problem = textProblem(text ?? '');
    if (problem !== undefined) throw new AppError(code, `${readable(what)} ${problem}`);
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
    // They quote what is wrong.
    warnings: api.warnings.map(readable),
    problems: api.problems.map(({ name, handler, message }) => ({
      name: name && readable(name),
      handler: handler && readable(handler),
      message: readable(message),
    })),
  };
}

/** Characters that whoever takes an endpoint holds in memory. */
export function codeLength({ generatedCode, handler, description }: ImportedEndpoint): number {
  return generatedCode.length + (handler?.code.length ?? 0) + (description?.length ?? 0);
}

function readable(text: string): string {
  return text.replace(/[\0\p{Surrogate}]/gu, '\ufffd');
}
