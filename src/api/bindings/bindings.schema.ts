/** Bindings: which service an endpoint may use, under which name. */
import { Type } from '@sinclair/typebox';
import { ENDPOINT_METHODS } from '../../model/endpoint-method.js';
import { Id, oneOf, Timestamp } from '../route/schemas.js';

const PoolId = Type.String({
  format: 'pool-id',
  description: 'Identifier by which handler code refers to the service',
});

export const BindingView = Type.Object(
  { endpoint_id: Id, service_id: Id, pool_id: PoolId, created_at: Timestamp },
  { title: 'Binding' },
);

export const CreateBinding = Type.Object({ service_id: Id, pool_id: PoolId });

export const UnbindParams = Type.Object({ endpoint_id: Id, service_id: Id });

export const Unbound = Type.Object(
  { endpoint_id: Id, service_id: Id, unbound: Type.Literal(true), pool_ids: Type.Array(PoolId) },
  { title: 'Unbound' },
);

export const UsingEndpointView = Type.Object(
  {
    id: Id,
    name: Type.String(),
    method: oneOf(ENDPOINT_METHODS),
    domain: Type.String(),
    path: Type.String(),
    route: Type.String({ description: 'The path with the base path of its collection' }),
    pool_id: PoolId,
  },
  { title: 'UsingEndpoint' },
);
