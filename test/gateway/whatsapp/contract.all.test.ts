/**
 * The contract suite on WhatsApp, with a typed fake socket where Baileys would open a connection: no servers of WhatsApp's
 * can be had for a test. Everything else of Baileys is the real package.
 */
import type { UserFacingSocketConfig } from 'baileys';
import { vi } from 'vitest';
import { describeGateway } from '../../contract/gateway-suite.ts';
import type { FakeWhatsApp } from './fake-whatsapp.ts';
import { openFakeWhatsApp } from './whatsapp-peers.ts';

const current = vi.hoisted((): { network: FakeWhatsApp | undefined } => ({ network: undefined }));

vi.mock('baileys', async (original) => ({
  ...(await original<typeof import('baileys')>()),
  makeWASocket: (config: UserFacingSocketConfig) => current.network?.library.makeWASocket(config),
}));

describeGateway('whatsapp, against a typed fake socket', (outboundAllow) =>
  openFakeWhatsApp(outboundAllow, (network) => {
    current.network = network;
  }),
);
