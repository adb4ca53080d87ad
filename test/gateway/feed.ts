/** The live feed of the inbox, read by a test. */

import { fetch } from 'soundpost-testing/http';
import { API_KEY } from './gateway-fixture.ts';

export interface FeedEvent {
  readonly event: string;
  readonly instanceId: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the fields that it expects, and fails where they are not
  readonly envelope: any;
}

/** Calls for every event until it is stopped, or the gateway ends. Resolves, once nothing is missed any more, with how to stop it. */
export async function followFeed(url: string, onEvent: (event: FeedEvent) => void): Promise<() => void> {
  const stopping = new AbortController();
  const response = await fetch(`${url}/inbox/api/events`, {
    headers: { apikey: API_KEY },
    signal: stopping.signal,
  });
  const read = async (): Promise<void> => {
    let rest = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = /^event: (.+)$/m.exec(block)?.[1];
        const data = /^data: (.+)$/m.exec(block)?.[1];
        if (event !== undefined && data !== undefined) {
          onEvent({ event, ...JSON.parse(data) });
        }
      }
    }
  };
  // It ends with the gateway, or because it is stopped.
  read().catch(() => undefined);
  return () => stopping.abort();
}
