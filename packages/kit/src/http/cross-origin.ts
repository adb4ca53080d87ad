/** Cross-origin access for web pages (decisions E, CORS_ORIGINS; WHATWG Fetch, "CORS protocol"). */
import cors from 'cors';
import type { RequestHandler } from 'express';

const DAY_SECONDS = 24 * 60 * 60;
const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

interface CrossOriginOptions {
  /** Such as `https://app.example.com`; `*` for any; empty: no other origin. */
  readonly origins: readonly string[];
  readonly methods: readonly string[];
  /** Headers that a page may read; a browser hides every other one. */
  readonly exposedHeaders: readonly string[];
  /** Whether a route, not this handler, answers preflight requests (OPTIONS). Default false. */
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
    // The page sets the key as a header; cookies are not used.
    credentials: false,
    preflightContinue,
  });
}

/** Origins of the pages at an address; this machine has several names. @param url absolute */
export function pageOrigins(url: string): string[] {
  const { origin, hostname, protocol, port } = new URL(url);
  if (!LOOPBACK_NAMES.includes(hostname)) return [origin];
  return LOOPBACK_NAMES.map((name) => `${protocol}//${name}${port === '' ? '' : `:${port}`}`);
}
