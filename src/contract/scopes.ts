/** What an API key may do (decisions A6). */
import { z } from 'zod';

export const scopes = ['extract', 'read', 'download', 'webhooks', 'priority', 'voice'] as const;
export const Scope = z.enum(scopes);
export type Scope = z.infer<typeof Scope>;
