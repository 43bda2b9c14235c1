/** Makes an import of an OpenAPI document: each operation gets the handler that is generated for it. */
import { generateHandler } from '../handler-source/generate-handler.js';
import type { ImportedApi } from '../imported-api.js';
import type { OpenApiDocument } from './document.js';

export function toImportedApi(document: OpenApiDocument): ImportedApi {
  const { title, description, basePath, operations, warnings } = document;
  return {
    title,
    description,
    basePath,
    endpoints: operations.map((operation) => ({
      name: operation.name,
      method: operation.method,
      path: operation.path,
      description: operation.description,
      generatedCode: generateHandler(operation, title),
      handler: null,
    })),
    dependencies: null,
    warnings,
    problems: [],
  };
}
