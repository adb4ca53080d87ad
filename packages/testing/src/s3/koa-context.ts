/** What a middleware of Koa sees of a request, as far as the tests look. */
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface S3Context {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  /** Decoded. */
  readonly path: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly headers: Readonly<Record<string, string | undefined>>;
  status: number;
  body: unknown;
  /** False: the middleware answers by itself. */
  respond?: boolean;
}
