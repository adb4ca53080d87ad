import type { Scope } from 'soundpost-contract/api-keys';

/** What each scope lets a key do. */
export const scopeWords: Readonly<Record<Scope, string>> = {
  extract: 'Submit jobs, upload files, cancel and try again.',
  transcribe: 'Submit jobs with transcripts.',
  read: 'See its jobs, how far they are, and its usage.',
  download: 'Fetch finished files.',
  webhooks: 'See and replace its webhook secret, try receivers, send deliveries again.',
  priority: 'Submit jobs that go before others.',
  voice: 'Send results as voice messages, as the instances below.',
  admin: 'Make and revoke keys. Only for whoever runs the service.',
};
