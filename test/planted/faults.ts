/** All planted faults: one for each promise, and the drawn mutants. */
import { apiFaults } from './api.ts';
import { clientFaults } from './client.ts';
import type { Fault } from './fault.ts';
import { gatewayFaults } from './gateway.ts';
import { mediaFaults } from './media.ts';
import { mutants } from './mutants-drawn.ts';
import { outboundFaults } from './outbound.ts';
import { queueFaults } from './queue.ts';
import { securityFaults } from './security.ts';
import { telegramFaults } from './telegram.ts';
import { uploadFaults } from './uploads.ts';
import { webhookFaults } from './webhooks.ts';
import { whatsappFaults } from './whatsapp.ts';

export const faults: readonly Fault[] = [
  ...apiFaults,
  ...uploadFaults,
  ...queueFaults,
  ...mediaFaults,
  ...outboundFaults,
  ...webhookFaults,
  ...gatewayFaults,
  ...telegramFaults,
  ...whatsappFaults,
  ...securityFaults,
  ...clientFaults,
  ...mutants,
];
