/**
 * A route as a value: method, path, access, input, answer and handler. The application mounts the
 * table of routes, and the OpenAPI document is made from it.
 */
import type { Request, Response } from 'express';
import type { Instance } from 'soundpost-chat/instances';
import { GatewayError, type GatewayErrorCode } from 'soundpost-contract/gateway-errors';
import type { z } from 'zod';
import { badRequest, readJson } from './middleware/error-answer.ts';
import { callerGone } from './outgoing.ts';

/**
 * - `instance`: the gateway's own key, or the token of the instance in the path (any, if none).
 * - `gateway`: only the gateway's own key.
 */
type RouteAccess = 'instance' | 'gateway';

interface RouteDocs {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: 'Messages' | 'Chats' | 'Groups' | 'Settings' | 'Instances' | 'Webhooks';
  readonly answer: AnswerDocs;
  /** Errors beside those of every route. */
  readonly errors: readonly GatewayErrorCode[];
}

interface AnswerDocs {
  readonly status: 200 | 201;
  readonly description: string;
  /** Omitted if the answer has no body. */
  readonly body?: z.ZodType;
}

export interface Route {
  readonly method: 'get' | 'post' | 'delete';
  /** Express path; `:instance` is the only parameter. */
  readonly path: string;
  readonly access: RouteAccess;
  readonly docs: RouteDocs;
  readonly body?: z.ZodType;
  readonly query?: z.ZodObject;
  readonly headers?: z.ZodObject;
  /** Accepts a form with a file, beside or, without `body`, in place of JSON. */
  readonly form?: z.ZodType;
  /** A GET with side effects, as the interface defines it. */
  readonly changes?: true;
  /** @param instance in the path, or the token's; undefined for the gateway's key without one */
  readonly handle: (request: Request, response: Response, instance: Instance | undefined) => Promise<void>;
}

interface Definition<Body extends z.ZodType, Query extends z.ZodObject, Answer extends z.ZodType>
  extends Pick<Route, 'method' | 'path' | 'access' | 'changes'> {
  readonly docs: Omit<RouteDocs, 'answer'> & {
    readonly answer: Omit<AnswerDocs, 'body'> & { readonly body?: Answer };
  };
  readonly body?: Body;
  readonly query?: Query;
  /** Switches of the public server that are on in the body: a sentence for each. */
  readonly foreign?: (body: unknown) => string[];
  /** Resolves with the answer's body; undefined if it has none. */
  readonly run: (input: {
    readonly instance: Instance;
    /** The caller's own, if the path has none. */
    readonly own: Instance | undefined;
    readonly body: z.output<Body>;
    readonly query: z.output<Query>;
    /** Aborted when the caller hangs up. */
    readonly gone: AbortSignal;
  }) => Promise<z.input<Answer> | undefined>;
}

/** A route with JSON or a query as input, and JSON or nothing as answer. */
export function route<
  Body extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodObject = z.ZodObject,
  Answer extends z.ZodType = z.ZodUndefined,
>(definition: Definition<Body, Query, Answer>): Route {
  const { run, body, query, foreign, ...about } = definition;
  return {
    ...about,
    ...(body ? { body } : {}),
    ...(query ? { query } : {}),
    async handle(request, response, instance) {
      const json = body && (await readJson(request, response));
      const refused = foreign?.(json) ?? [];
      if (refused.length > 0) throw new GatewayError('bad_request', refused);
      const input = {
        // Not read by routes without an instance in their path.
        get instance(): Instance {
          return named(instance);
        },
        own: instance,
        body: (body ? parsed(body, json) : undefined) as z.output<Body>,
        query: (query ? parsed(query, request.query) : {}) as z.output<Query>,
        gone: callerGone(response),
      };
      const answer = await run(input);
      response.status(definition.docs.answer.status);
      if (answer === undefined) {
        response.end();
      } else {
        response.json(answer);
      }
    },
  };
}

export function named(instance: Instance | undefined): Instance {
  if (instance === undefined) {
    throw new Error('a route whose path names no instance asked for one');
  }
  return instance;
}

function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (!result.success) {
    throw badRequest(result.error);
  }
  return result.data;
}
