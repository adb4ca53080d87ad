/** What a server tells of itself, for its OpenAPI document. */
import type { z } from 'zod';
import type { ZodOpenApiComponentsObject, ZodOpenApiObject, ZodOpenApiOverride } from 'zod-openapi';

/** Of a schema, each by a name of its own. */
export type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;

/** Schemas by media type; `binary` for bytes. */
export type Content = Readonly<Record<string, z.ZodType | 'binary'>>;

/** What the document says about an operation; path parameters are told by its path. */
export interface OperationDocs<Code extends string> {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  /** An object schema of the query's fields. */
  readonly query?: z.ZodObject | undefined;
  /** Request headers beside the key. */
  readonly headers?: z.ZodObject | undefined;
  readonly body?: Content | undefined;
  /** What succeeds, by HTTP status. */
  readonly answers: Readonly<Record<number, AnswerDocs<Code>>>;
  readonly errors: readonly Code[];
}

export interface AnswerDocs<Code extends string> {
  readonly description: string;
  readonly content?: Content | undefined;
  /** Codes that come with this status, whatever the catalogue's row says. */
  readonly failures?: readonly Code[];
  /** Response headers: what each says; the common ones say it themselves. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ErrorDocs<Code extends string> {
  readonly catalogue: Readonly<
    Record<Code, { readonly httpStatus: number; readonly meaning: string; readonly remedy: string }>
  >;
  /** Whose answers carry Retry-After. */
  readonly waiting: readonly Code[];
  readonly schema: (codes: readonly Code[]) => z.ZodType;
  readonly example: (code: Code) => unknown;
}

export interface Operation<Code extends string> {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** As Express has it: `/v1/jobs/:jobId`. */
  readonly path: string;
  readonly docs: OperationDocs<Code>;
  /** Empty where no key is needed. */
  readonly security: readonly Record<string, string[]>[];
  /** Of the common headers those that every answer carries. */
  readonly answerHeaders: readonly string[];
}

/** A webhook that the server sends. */
export interface EventDocs {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** One that has a name. */
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
  /** Named once and referred to. Where one means one thing to a request and another to an answer, the latter's name ends in `InForce`. */
  readonly schemas: Readonly<Record<string, z.ZodType>>;
  readonly examples: (schema: z.ZodType) => Examples | undefined;
  /** What may stand at a place in a path. */
  readonly pathParameters: Readonly<Record<string, z.ZodType>>;
  readonly headers: NonNullable<ZodOpenApiComponentsObject['headers']>;
  readonly securitySchemes: NonNullable<ZodOpenApiComponentsObject['securitySchemes']>;
  /** Where a path answers, if not at all of `servers`. */
  readonly serversOf?: (path: string) => ZodOpenApiObject['servers'];
  readonly override?: ZodOpenApiOverride;
}
