/** Types of environment values, each with its error message. */
import { TransportKind, transportKinds } from 'soundpost-contract/gateway-instances';
import { z } from 'zod';

export const port = z.coerce.number().int().min(0).max(65_535);
export const seconds = z.coerce.number().positive();
export const count = z.coerce.number().int().positive();
export const bytes = z.coerce.number().int().positive();
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
export const numbers = list.transform((items) => items.map(Number));
/** `20` for every network, or `whatsapp:20,xmpp:60`; networks without one keep their default. */
export const sendLimits = z
  .string()
  .regex(
    /^(\d+|[a-z-]+:\d+(,[a-z-]+:\d+)*)$/,
    'must be a number, or networks with one each, such as whatsapp:20,xmpp:60',
  )
  .transform((text) =>
    text.includes(':')
      ? Object.fromEntries(text.split(',').map((part) => part.split(':')))
      : Object.fromEntries(transportKinds.map((kind) => [kind, text])),
  )
  .pipe(z.partialRecord(TransportKind, z.coerce.number()));
/** `s3://bucket/prefix`, by Amazon S3 User Guide, "Bucket naming rules", and our key segments. */
export const bucketUrl = z
  .string()
  .regex(
    /^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*\/?$/,
    'must be s3://bucket or s3://bucket/prefix, the prefix of A-Z a-z 0-9 . _ - and /',
  )
  .transform((url) => {
    const [bucket = '', ...segments] = url.slice('s3://'.length).split('/').filter(Boolean);
    return { bucket, prefix: segments.map((segment) => `${segment}/`).join('') };
  });
export const httpUrl = z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, ''));
/** fetch refuses a URL with a password, and its error would show it. */
export const urlWithoutPassword = httpUrl.refine(
  (url) => URL.parse(url)?.username === '' && URL.parse(url)?.password === '',
  'must hold no name and no password; the key has a variable of its own',
);

/** OpenTelemetry's form: W3C Baggage without properties. */
export const traceHeaders = z
  .string()
  .regex(
    /^[!#$%&'*+.^_`|~\w-]+=[^,;\s]*(,\s*[!#$%&'*+.^_`|~\w-]+=[^,;\s]*)*$/,
    'must be name=value, separated by commas',
  )
  .transform((text, context) => {
    try {
      return Object.fromEntries(
        text.split(',').map((pair): [string, string] => {
          const [name = '', ...value] = pair.trim().split('=');
          return [name, decodeURIComponent(value.join('='))];
        }),
      );
    } catch {
      context.addIssue('a percent sign must begin an escape of UTF-8, such as %25');
      return z.NEVER;
    }
  });
