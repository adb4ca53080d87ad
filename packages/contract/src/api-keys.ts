/** API keys as they are managed over HTTP (decisions A4, A6). */
import { z } from 'zod';
import { TenantId } from './ids.ts';

// What an API key may do (decisions A6).

/** The scopes of a key that is made without a choice: all that concerns its own jobs. */
export const ordinaryScopes = [
  'extract',
  'transcribe',
  'read',
  'download',
  'webhooks',
  'priority',
  'voice',
] as const;
/** `admin` creates and revokes keys, so only the operator should have it. */
export const scopes = [...ordinaryScopes, 'admin'] as const;
export const Scope = z.enum(scopes);
export type Scope = z.infer<typeof Scope>;

/** POST /v1/keys. */
export const NewKeyRequest = z.strictObject({
  name: z
    .string()
    .regex(/^[^\p{Cc}\p{Cf}]{1,100}$/u, 'must be 1 to 100 characters, none of them a control character')
    .regex(/\S/, 'must not be blank')
    .meta({ description: 'What the key is for; shown in lists and metrics', example: 'newsroom' }),
  scopes: z
    .array(Scope)
    .min(1)
    .max(20)
    .meta({ description: 'The caller must have each of them', example: ['extract', 'read', 'download'] }),
  instances: z
    .array(
      z.string().regex(/^([A-Za-z0-9_-]{1,64}|\*)$/, 'must be the name or id of a gateway instance, or *'),
    )
    .max(100)
    .default([])
    .meta({
      description:
        'Gateway instances that the key may send from; `*` for any. The caller must have each of them, or `*`',
      example: ['support'],
    }),
});

/** A key without its secret. */
export const KeyState = z.object({
  id: TenantId.meta({ description: 'The key’s id, and the tenant of its jobs', example: 'k3v9x0qa' }),
  name: z.string().meta({ example: 'newsroom' }),
  scopes: z.array(Scope).meta({ example: ['extract', 'read', 'download'] }),
  instances: z.array(z.string()).meta({ example: ['support'] }),
  status: z.enum(['active', 'paused', 'revoked', 'unreadable']).meta({
    description:
      'paused: can only read and delete, its jobs wait. revoked: has no access. unreadable: has no access, because its record cannot be read; revoke it',
    example: 'active',
  }),
  createdAt: z.iso.datetime().meta({ example: '2026-01-01T00:00:00.000Z' }),
});
export type KeyState = z.infer<typeof KeyState>;

/** POST /v1/session. */
export const SessionRequest = z.strictObject({
  key: z.string().max(200).meta({ example: 'sp_k3v9x0qa_9dXw2LrTq7mZcB4nYhVfKs8JgPe1RuAo' }),
});
export const ConsoleSessionState = z.object({
  key: KeyState.pick({ id: true, name: true, scopes: true, instances: true }),
  expiresAt: z.iso.datetime().meta({ example: '2026-01-01T12:00:00.000Z' }),
});

/** GET /v1/keys. */
export const KeyList = z.object({
  keys: z.array(KeyState),
  nextCursor: z.string().nullable().meta({ example: null }),
});

/** POST /v1/keys and rotate. */
export const KeyWithSecret = KeyState.extend({
  key: z.string().meta({
    description: 'The key for X-API-Key; shown only once',
    example: 'sp_k3v9x0qa_9dXw2LrTq7mZcB4nYhVfKs8JgPe1RuAo',
  }),
});
export type KeyWithSecret = z.infer<typeof KeyWithSecret>;
