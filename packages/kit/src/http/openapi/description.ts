/** A server's description for its OpenAPI document. */
import type { z } from 'zod';
import type { ZodOpenApiComponentsObject, ZodOpenApiObject, ZodOpenApiOverride } from 'zod-openapi';

/** Examples of a schema, each with its own name. */
export type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;

/** Schemas by media type; `binary` for bytes. */
export type Content = Readonly<Record<string, z.ZodType | 'binary'>>;

/** An operation's description; its path describes the path parameters. */
export interface OperationDocs<Code extends string> {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  /** An object schema of the query's fields. */
  readonly query?: z.ZodObject | undefined;
  /** Request headers besides the key. */
  readonly headers?: z.ZodObject | undefined;
  readonly body?: Content | undefined;
  /** Successes by HTTP status. */
  readonly answers: Readonly<Record<number, AnswerDocs<Code>>>;
  readonly errors: readonly Code[];
}

export interface AnswerDocs<Code extends string> {
  readonly description: string;
  readonly content?: Content | undefined;
  /** Codes with this status, whatever the catalogue says. */
  readonly failures?: readonly Code[];
  /** Response headers with descriptions; common headers have their own. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ErrorDocs<Code extends string> {
  readonly catalogue: Readonly<
    Record<Code, { readonly httpStatus: number; readonly meaning: string; readonly remedy: string }>
  >;
  /** Codes whose answers carry Retry-After. */
  readonly waiting: readonly Code[];
  readonly schema: (codes: readonly Code[]) => z.ZodType;
  readonly example: (code: Code) => unknown;
}

export interface Operation<Code extends string> {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** In Express' form: `/v1/jobs/:jobId`. */
  readonly path: string;
  readonly docs: OperationDocs<Code>;
  /** Empty if no key is needed. */
  readonly security: readonly Record<string, string[]>[];
  /** The common headers that every answer carries. */
  readonly answerHeaders: readonly string[];
  /** Of an operation whose errors have another form. Default: the server's. */
  readonly errors?: ErrorDocs<Code> | undefined;
}

/** A webhook that the server sends. */
export interface EventDocs {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** A named schema. */
  readonly schema: z.ZodType;
  readonly answers: Readonly<Record<string, { readonly description: string }>>;
}

export interface ServerDocs<Code extends string>
  extends Pick<ZodOpenApiObject, 'openapi' | 'info' | 'servers' | 'tags'> {
  readonly operations: readonly Operation<Code>[];
  readonly errors: ErrorDocs<Code>;
  /** By event. */
  readonly events: Readonly<Record<string, EventDocs>>;
  readonly eventHeaders: z.ZodObject;
  /** Shared by name. If requests and answers differ, the latter's name ends in `InForce`. */
  readonly schemas: Readonly<Record<string, z.ZodType>>;
  readonly examples: (schema: z.ZodType) => Examples | undefined;
  /** Schemas of path parameters. */
  readonly pathParameters: Readonly<Record<string, z.ZodType>>;
  readonly headers: NonNullable<ZodOpenApiComponentsObject['headers']>;
  readonly securitySchemes: NonNullable<ZodOpenApiComponentsObject['securitySchemes']>;
  /** Servers of a path, if not all of `servers`. */
  readonly serversOf?: (path: string) => ZodOpenApiObject['servers'];
  readonly override?: ZodOpenApiOverride;
}
