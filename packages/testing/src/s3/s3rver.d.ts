/** s3rver has no types: what the tests use of it. */
declare module 's3rver' {
  import type { Server } from 'node:http';
  import type { S3Context } from './koa-context.ts';

  type Middleware = (ctx: S3Context, next: () => Promise<void>) => Promise<void>;

  export default class S3rver {
    constructor(options: {
      readonly address: string;
      readonly port: number;
      readonly silent: boolean;
      readonly vhostBuckets: boolean;
      readonly directory: string;
    });
    /** As in any application of Koa; the first one sees a request first. */
    readonly middleware: Middleware[];
    readonly context: { store: object; logger: object };
    store: object;
    readonly httpServer: Server;
    run(): Promise<{ readonly port: number }>;
    close(): Promise<void>;
  }
}

declare module 's3rver/lib/models/bucket.js' {
  export default class S3Bucket {
    constructor(name: string, creationDate: Date);
  }
}

declare module 's3rver/lib/models/error.js' {
  export default class S3Error extends Error {
    constructor(code: string, message: string, detail?: Readonly<Record<string, string>>);
  }
}

declare module 's3rver/lib/models/object.js' {
  import type { Readable } from 'node:stream';

  export default class S3Object {
    constructor(
      bucket: string,
      key: string,
      content: Readable | null,
      metadata: Readonly<Record<string, string | number>>,
    );
    readonly bucket: string;
    readonly key: string;
    readonly content: Readable;
    readonly metadata: Readonly<Record<string, string>>;
    range?: { readonly start: number; readonly end: number };
  }
}
