/** A stack of its own in the example for the pictures of docs/ui. */

const DOCS = 'docs.example.com';
const DOCS_PAGE = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    let page = req.path_param("page");
    Response::ok(json!({ "page": page }))
}

handler_loop!(handle);
`;

const SEARCH = `use rust_edge_gateway_sdk::prelude::*;

fn handle(_req: Request) -> Response {
    Response::ok(json!({ "found": [] }))
}

handler_loop!(handle);
`;

/** Its files. @param edition 1: what is there; 2: what pictures are going to apply */
export const stackFiles = (edition) => ({
  'edge.yaml': `stack: docs
domains:
  - host: ${DOCS}
    name: Documentation
    variables: {EDITION: "${edition}", LANGUAGE: en}
    policies: {rate_limit: {requests: ${edition === 1 ? 60 : 120}, window_seconds: 60, by: address}}
collections:
  - {host: ${DOCS}, name: guides, base_path: /guides}
endpoints:
  - {host: ${DOCS}, method: GET, collection: guides, path: "/{page}", name: Show a guide, handler: guide.rs}
${
  edition === 1
    ? `  - {host: ${DOCS}, method: GET, route: /old-search, name: Search, handler: guide.rs}`
    : `  - {host: ${DOCS}, method: GET, route: /search, name: Search the guides, handler: search.rs}`
}
`,
  'guide.rs': edition === 1 ? DOCS_PAGE : DOCS_PAGE.replace('"page": page }', '"page": page, "edition": 2 }'),
  ...(edition === 2 && { 'search.rs': SEARCH }),
});
