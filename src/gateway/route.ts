/**
 * A route as a value: method, path, who may use it, what it takes and answers, and the handler. The table of routes is what
 * the application mounts and what the OpenAPI document is made from.
 */
import type { Request, Response } from 'express';
import type { Instance } from 'soundpost-chat/instances';
import type { GatewayErrorCode } from 'soundpost-contract/gateway-errors';
import type { z } from 'zod';
import { badRequest } from './middleware/error-answer.ts';
import { readJson } from './middleware/json-body.ts';

/**
 * - `instance`: the gateway's own key, or the token of the instance that the path names; of any where it names none.
 * - `gateway`: the gateway's own key alone.
 */
type RouteAccess = 'instance' | 'gateway';

interface RouteDocs {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: 'Messages' | 'Chats' | 'Groups' | 'Settings' | 'Instances' | 'Webhooks';
  readonly answer: AnswerDocs;
  /** Codes that a caller may meet here, besides those of every route. */
  readonly errors: readonly GatewayErrorCode[];
}

interface AnswerDocs {
  readonly status: 200 | 201;
  readonly description: string;
  /** Left out where the answer has no body. */
  readonly body?: z.ZodType;
}

export interface Route {
  readonly method: 'get' | 'post' | 'delete';
  /** Express path; `:instance` is the one parameter there is. */
  readonly path: string;
  readonly access: RouteAccess;
  readonly docs: RouteDocs;
  readonly body?: z.ZodType;
  readonly query?: z.ZodObject;
  readonly headers?: z.ZodObject;
  /** Takes a form with a file as well as JSON; see the send route. */
  readonly form?: z.ZodType;
  /** A GET that changes something, because the interface has it so. */
  readonly changes?: true;
  /** @param instance that the path names; where it names none, that of the caller's token, undefined with the gateway's own key */
  readonly handle: (request: Request, response: Response, instance: Instance | undefined) => Promise<void>;
}

interface Definition<Body extends z.ZodType, Query extends z.ZodObject, Answer extends z.ZodType>
  extends Pick<Route, 'method' | 'path' | 'access' | 'changes'> {
  readonly docs: Omit<RouteDocs, 'answer'> & {
    readonly answer: Omit<AnswerDocs, 'body'> & { readonly body?: Answer };
  };
  readonly body?: Body;
  readonly query?: Query;
  /** What it resolves with becomes the answer's body; undefined where the answer has none. */
  readonly run: (input: {
    readonly instance: Instance;
    /** Of the caller's token, where the path names none. */
    readonly own: Instance | undefined;
    readonly body: z.output<Body>;
    readonly query: z.output<Query>;
  }) => Promise<z.input<Answer> | undefined>;
}

/** A route that takes JSON or a query and answers JSON or nothing. */
export function route<
  Body extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodObject = z.ZodObject,
  Answer extends z.ZodType = z.ZodUndefined,
>(definition: Definition<Body, Query, Answer>): Route {
  const { run, body, query, ...about } = definition;
  return {
    ...about,
    ...(body ? { body } : {}),
    ...(query ? { query } : {}),
    async handle(request, response, instance) {
      const input = {
        // Not looked at by the routes whose path names none.
        get instance(): Instance {
          return named(instance);
        },
        own: instance,
        body: (body ? parsed(body, await readJson(request, response)) : undefined) as z.output<Body>,
        query: (query ? parsed(query, request.query) : {}) as z.output<Query>,
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
