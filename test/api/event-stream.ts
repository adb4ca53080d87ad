/** The events of a job, as whoever watches it gets them. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { until } from 'soundpost-testing/until';
import type { Json } from './api-fixture.ts';

interface Event {
  readonly event: string | undefined;
  readonly id: number;
  readonly data: Json;
}

interface At {
  readonly url: string;
  /** Left out by who has a session. */
  readonly key?: string;
}

/** An event stream, read as a browser reads it (WHATWG HTML 9.2.6). */
export class Stream {
  readonly response: IncomingMessage;
  readonly events: Event[] = [];
  comments = 0;
  readonly ended: Promise<void>;

  constructor(response: IncomingMessage) {
    this.response = response;
    this.ended = this.#read();
  }

  static open(jobId: string, at: At, headers: Record<string, string> = {}): Promise<Stream> {
    return Stream.#openAt(`/v1/jobs/${jobId}/events`, at, headers);
  }

  /** Of all jobs of the key, once it listens. */
  static async ofKey(at: At, headers: Record<string, string> = {}): Promise<Stream> {
    const stream = await Stream.#openAt('/v1/events', at, headers);
    if (stream.response.statusCode === 200) await stream.got(1);
    return stream;
  }

  static async #openAt(path: string, { url, key }: At, headers: Record<string, string>): Promise<Stream> {
    const request = get(`${url}${path}`, { headers: { ...(key && { 'x-api-key': key }), ...headers } });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return new Stream(response);
  }

  async #read(): Promise<void> {
    let fields: Record<string, string> = {};
    for await (const line of createInterface({ input: this.response })) {
      if (line === '') {
        if (fields.data !== undefined) {
          this.events.push({ event: fields.event, id: Number(fields.id), data: JSON.parse(fields.data) });
        }
        fields = {};
        continue;
      }
      const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      if (name === '') this.comments += 1;
      fields[name] = value;
    }
  }

  got(count: number): Promise<unknown> {
    return until(`${count} events`, () => this.events.length >= count);
  }

  close(): void {
    this.response.destroy();
  }
}
