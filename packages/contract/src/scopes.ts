/** What an API key may do (decisions A6). */
import { z } from 'zod';

/** What a key has that is made without a choice: all that concerns its own jobs. */
export const ordinaryScopes = ['extract', 'read', 'download', 'webhooks', 'priority', 'voice'] as const;
/** `admin` makes and revokes keys, so only who runs the service should have it. */
export const scopes = [...ordinaryScopes, 'admin'] as const;
export const Scope = z.enum(scopes);
export type Scope = z.infer<typeof Scope>;
