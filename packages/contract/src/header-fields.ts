/** Headers that a caller has us send along: to a webhook, to a destination. */
import { z } from 'zod';

const MAX_HEADERS = 20;
const LONGEST_NAME = 128;

interface HeaderRules {
  /** Lower case: what whoever sends them needs for itself. */
  readonly reserved: RegExp;
  /** Such as `the gateway`. */
  readonly setBy: string;
  /** Characters of a value, at most. */
  readonly longestValue: number;
}

/** What no caller may set: where the message goes, and where it ends (RFC 9110, 7.6.1 and 7.2). */
export const CONNECTION_HEADERS =
  'host|content-length|transfer-encoding|connection|keep-alive|upgrade|expect|te|trailer|proxy-.*';

/** At most 20 of them, names and values as RFC 9110 has them (5.6.2 and 5.5). */
export function headerFields({ reserved, setBy, longestValue }: HeaderRules) {
  return z
    .record(
      z
        .string()
        .max(LONGEST_NAME)
        .regex(/^[!#$%&'*+.^_`|~\w-]+$/, 'must be a header name'),
      z
        .string()
        .max(longestValue)
        .regex(/^[\x20-\x7e\x80-\xff]*$/, 'must be a header value'),
    )
    .superRefine((headers, context) => {
      const names = Object.keys(headers);
      for (const name of names.filter((candidate) => reserved.test(candidate.toLowerCase()))) {
        context.addIssue({ code: 'custom', path: [name], message: `is set by ${setBy} itself` });
      }
      if (names.length > MAX_HEADERS) {
        context.addIssue({ code: 'custom', message: `must be ${MAX_HEADERS} at most` });
      }
    });
}
