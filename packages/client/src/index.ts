/**
 * The package soundpost-client. Needs only fetch and WebCrypto: Node 20.3 or newer, and browsers.
 */
// biome-ignore-all lint/performance/noBarrelFile: the package's entry; our own code imports parts
export type { WebhookEvent } from 'soundpost-contract/webhook-events';
export {
  type CallOptions,
  createClient,
  type DownloadOptions,
  type FileJobRequest,
  type Keys,
  type ListOptions,
  type SoundpostClient,
  type SubmitOptions,
  type Uploads,
} from './client.ts';
export type { ClientOptions } from './connection.ts';
export { SoundpostError, type SoundpostErrorCode } from './error.ts';
export type { EventsOptions } from './events.ts';
export type { SentFile } from './file.ts';
export type { CompletedJob, WaitOptions } from './wait.ts';
export { type VerifyOptions, verifyWebhook, WebhookSignatureError } from './webhook.ts';
