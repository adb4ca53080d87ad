/**
 * Headers that a caller gives for a source, such as Authorization. They may be secrets, so only the
 * origin of the caller's own URL gets them (decisions A2; RFC 9110, 15.4 and 17.11).
 */

export interface OriginHeaders {
  readonly origin: string;
  /** Names in lower case. */
  readonly values: Readonly<Record<string, string>>;
}

/** @param url the caller's, absolute */
export function originHeaders(
  url: string,
  headers: Readonly<Record<string, string>> | undefined,
): OriginHeaders | undefined {
  const target = URL.parse(url);
  if (headers === undefined || target === null) return undefined;
  const values = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return { origin: originOf(target), values: Object.fromEntries(values) };
}

/**
 * What a request to `url` carries of the headers, and what its redirects may carry: once a chain
 * has left the origin, it has none left to bring back.
 */
export function stillAllowed(headers: OriginHeaders | undefined, url: URL): OriginHeaders | undefined {
  return headers?.origin === originOf(url) ? headers : undefined;
}

/** Scheme, host and port; DNS ignores one trailing dot. */
function originOf({ protocol, hostname, port }: URL): string {
  return `${protocol}//${hostname.replace(/\.$/, '')}:${port}`;
}
