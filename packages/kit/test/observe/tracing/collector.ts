/** A collector of traces: takes what is exported by OTLP over HTTP, as JSON. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { receivedBody } from 'soundpost-testing/received-body';

export interface Span {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
}

export interface Collector {
  readonly endpoint: string;
  /** In the order in which they came. */
  readonly spans: readonly Span[];
  /** Everything that was sent, as it was. */
  readonly text: () => string;
  readonly headers: readonly Readonly<Record<string, unknown>>[];
  close(): Promise<void>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}
interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<Span, 'attributes'> & { readonly attributes: readonly Attribute[] })[];
    }[];
  }[];
}

const plain = (attributes: readonly Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/** @param status of its answers */
export async function startCollector(status = 200): Promise<Collector> {
  const spans: Span[] = [];
  const texts: string[] = [];
  const headers: Record<string, unknown>[] = [];
  const server = createServer(async (request, response) => {
    const body = await receivedBody(request);
    if (body === undefined) return;
    const text = body.toString('utf8');
    headers.push({ ...request.headers, ':path': request.url });
    texts.push(text);
    const { resourceSpans } = JSON.parse(text) as Export;
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = String(plain(resource.attributes)['service.name']);
      for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
        spans.push({
          ...span,
          service,
          parentSpanId: span.parentSpanId ?? '',
          attributes: plain(span.attributes),
        });
      }
    }
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    spans,
    text: () => texts.join('\n'),
    headers,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
