/** Which web pages of elsewhere may call a server of ours (decisions E, CORS_ORIGINS; WHATWG Fetch, "CORS protocol"). */
import cors from 'cors';
import type { RequestHandler } from 'express';

const DAY_SECONDS = 24 * 60 * 60;
const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

interface CrossOriginOptions {
  /** Such as `https://app.example.com`; `*` for any; none: no page of elsewhere. */
  readonly origins: readonly string[];
  readonly methods: readonly string[];
  /** What a page may read beside the body; a browser hides every other header. */
  readonly exposedHeaders: readonly string[];
  /** Whether a route answers the question that a browser asks before (OPTIONS), and not this handler. Default false. */
  readonly preflightContinue?: boolean;
}

export function crossOrigin({
  origins,
  methods,
  exposedHeaders,
  preflightContinue = false,
}: CrossOriginOptions): RequestHandler {
  return cors({
    origin: origins.includes('*') ? '*' : [...origins],
    methods: [...methods],
    exposedHeaders: [...exposedHeaders],
    maxAge: DAY_SECONDS,
    // The key is a header that the page sets itself; cookies play no part.
    credentials: false,
    preflightContinue,
  });
}

/** Origins of the pages at an address: on this machine it has several names. @param url absolute */
export function pageOrigins(url: string): string[] {
  const { origin, hostname, protocol, port } = new URL(url);
  if (!LOOPBACK_NAMES.includes(hostname)) return [origin];
  return LOOPBACK_NAMES.map((name) => `${protocol}//${name}${port === '' ? '' : `:${port}`}`);
}
