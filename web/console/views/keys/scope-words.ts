import type { Scope } from 'soundpost-contract/api-keys';

/** What each scope lets a key do. */
export const scopeWords: Readonly<Record<Scope, string>> = {
  extract: 'Submit jobs, upload files, cancel and retry.',
  transcribe: 'Submit jobs with transcripts.',
  read: 'See jobs, progress and usage.',
  download: 'Download finished files.',
  webhooks: 'See and replace the webhook secret, test endpoints, resend deliveries.',
  priority: 'Submit high-priority jobs.',
  voice: 'Send voice messages from the instances below.',
  admin: 'Create and revoke keys. For operators only.',
};
