/**
 * The short way from a request to its route: one look into a tree of paths. Whatever is not plainly a route with its method (HEAD, OPTIONS, other methods,
 * encoded characters, unknown paths) is left to Express, which would have come to the same route by trying one after the other.
 */
import type { Request, Response } from 'express';
import { JobId } from '../contract/ids.ts';
import { admit } from './middleware/authentication.ts';
import type { ApiServices, Route, RouteContext } from './route.ts';

interface Node {
  readonly fixed: Map<string, Node>;
  /** The segment that may be anything. */
  any: { readonly name: string; readonly node: Node } | undefined;
  /** By method, in capitals. */
  readonly routes: Map<string, Route>;
}

interface Found {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** Undefined where the request is left to Express. */
type Dispatch = (request: Request, response: Response) => Promise<void> | undefined;

/** @param prefix under which the routes of /v1 answer too */
export function dispatching(table: readonly Route[], prefix: string, services: ApiServices): Dispatch {
  const root = newNode();
  for (const route of table) {
    plant(root, route);
  }
  return (request, response) => {
    const path = request.url.split('?', 1)[0] ?? '';
    const isPrefixed = path.startsWith(`${prefix}/v1/`);
    const found = lookUp(root, request.method, isPrefixed ? path.slice(prefix.length) : path);
    if (found === undefined) {
      return undefined;
    }
    request.baseUrl = isPrefixed ? prefix : '';
    request.params = found.params;
    request.route = { path: found.route.path };
    return handle(found.route, request, response, services);
  };
}

/** Lets the request in, and has it handled. */
export async function handle(
  route: Route,
  request: Request,
  response: Response,
  services: ApiServices,
): Promise<void> {
  const { access } = route;
  if (access.by === 'public' || (access.by === 'signature' && request.query.signature !== undefined)) {
    return route.handle({ request, response, services, key: undefined });
  }
  const named = route.reads === 'job' ? JobId.safeParse(request.params.jobId).data : undefined;
  const { key, record } = await admit(request, response, services, access, named);
  const context: RouteContext = { request, response, services, key };
  return route.handle(named === undefined ? context : { ...context, record });
}

function newNode(): Node {
  return { fixed: new Map(), any: undefined, routes: new Map() };
}

function plant(root: Node, route: Route): void {
  let node = root;
  for (const segment of route.path.split('/').slice(1)) {
    if (segment.startsWith(':')) {
      const name = segment.slice(1);
      node.any ??= { name, node: newNode() };
      if (node.any.name !== name) {
        throw new Error(
          `${route.path}: another route calls this segment :${node.any.name}; give both one name`,
        );
      }
      node = node.any.node;
    } else {
      const next = node.fixed.get(segment) ?? newNode();
      node.fixed.set(segment, next);
      node = next;
    }
  }
  node.routes.set(route.method.toUpperCase(), route);
}

function lookUp(root: Node, method: string, path: string): Found | undefined {
  if (!path.startsWith('/') || path.includes('%')) {
    return undefined;
  }
  const params: Record<string, string> = {};
  let node: Node | undefined = root;
  for (const segment of path.slice(1).split('/')) {
    const fixed: Node | undefined = node.fixed.get(segment);
    if (fixed === undefined && node.any !== undefined && segment !== '') {
      params[node.any.name] = segment;
      node = node.any.node;
    } else {
      node = fixed;
    }
    if (node === undefined) {
      return undefined;
    }
  }
  const route = node.routes.get(method);
  return route === undefined ? undefined : { route, params };
}
