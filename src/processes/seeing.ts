/** What lets an operator see into a process, put around its HTTP server. */

import type { Config } from '../config.ts';
import type { Around } from '../http/watched.ts';
import { namesLoopback } from '../metrics/access.ts';
import { measured } from '../metrics/server.ts';
import type { Part } from '../metrics/table.ts';
import type { Ground } from './ground.ts';

export function seenAs(server: Part, { config, metrics, traces }: Ground): Around {
  const measure = { metrics, server, token: config.METRICS_TOKEN, isPublished: isPublished(config) };
  return (handler) => {
    const spans = traces.around?.(handler);
    const figures = measured(spans?.handle ?? handler, measure);
    return {
      handle: figures.handle,
      ended(...request) {
        figures.ended(...request);
        spans?.ended(...request);
      },
    };
  };
}

function isPublished({ PUBLIC_URL, GATEWAY_PUBLIC_URL }: Config): boolean {
  return [PUBLIC_URL, GATEWAY_PUBLIC_URL].some(
    (url) => url !== undefined && !namesLoopback(new URL(url).host),
  );
}
