/** A recording that comes in while the storage is away: its transport has to report it again. */
import { createLogger } from 'soundpost-kit/observe/logger';
import { expect, it } from 'vitest';
import { Incoming } from '../../src/gateway/incoming.ts';
import { storageFailure } from '../../src/gateway/media-store.ts';

it('is not taken for one that cannot be kept', async () => {
  const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  const incoming = new Incoming({
    instances: { find: async () => ({ id: 'i', name: 'shop', settings: {} }) },
    log: { find: async () => undefined },
    workspaces: { use: async (_purpose: string, work: (folder: string) => unknown) => work('') },
    notes: {
      async make() {
        throw storageFailure(full);
      },
    },
    closing: new AbortController().signal,
    logger: createLogger('silent'),
  } as never);
  const message = { messageId: 'A', isGroup: false, content: { kind: 'file', path: 'voice' } };
  await expect(incoming.messageArrived('i', message as never)).rejects.toBe(full);
});
