/** Examples that do not follow from single fields. A test checks each against its schema. */

import { SendAudioRequest } from 'soundpost-contract/gateway';
import { InstanceGoneAnswer, SetSettingsRequest } from 'soundpost-contract/gateway-instances';
import {
  BlockStatusRequest,
  FindContactsRequest,
  SendInviteRequest,
  SendPresenceRequest,
  UpdateMessageRequest,
} from 'soundpost-contract/gateway-operations';
import {
  InstanceDeliveries,
  MakeInstanceRequest,
  SetWebhookRequest,
} from 'soundpost-contract/gateway-webhooks';
import { MessageKey } from 'soundpost-contract/job';
import type { Examples } from 'soundpost-kit/http/openapi/description';
import { example, examplesOf as examplesAmong, sampleOf } from 'soundpost-kit/http/openapi/examples';
import type { z } from 'zod';

const ada = '12025550101@people.loopback';
const key = MessageKey.parse(sampleOf(MessageKey, new Map()));

const known = new Map<z.ZodType, Examples>([
  example(SendAudioRequest, {
    url: {
      summary: 'A file with an address',
      value: { number: '12025550101', audio: 'https://example.com/greeting.mp3' },
    },
    answer: {
      summary: 'An answer to a message, recorded for two seconds',
      value: {
        number: '12025550101',
        audio: 'data:audio/mpeg;base64,SUQzBAAAAAAAI1RTU0UAAAAP',
        delay: 2000,
        quoted: { key: { id: key.id }, message: { conversation: 'Shall we hear it?' } },
        mentioned: ['12025550102'],
      },
    },
  }),
  example(SetSettingsRequest, {
    calls: {
      summary: 'Reject calls',
      value: { rejectCall: true, msgCall: 'I cannot talk, please write.' },
    },
  }),
  example(UpdateMessageRequest, {
    caption: {
      summary: 'A caption for a voice message',
      value: { number: 12025550101, text: 'The second part', key },
    },
  }),
  example(SendInviteRequest, {
    one: {
      summary: 'Invite somebody',
      value: {
        groupJid: '120363000000000001@groups.loopback',
        description: 'Come and listen',
        numbers: ['12025550101'],
      },
    },
  }),
  example(SendPresenceRequest, {
    recording: {
      summary: 'Recording for two seconds',
      value: { number: '12025550101', presence: 'recording', delay: 2000 },
    },
    options: {
      summary: 'The same in the other form',
      value: {
        number: '12025550101',
        options: { number: '12025550101', presence: 'recording', delay: 2000 },
      },
    },
  }),
  example(BlockStatusRequest, {
    block: { summary: 'Block', value: { number: '12025550103', status: 'block' } },
  }),
  example(FindContactsRequest, {
    all: { summary: 'All', value: {} },
    one: { summary: 'One of them', value: { where: { id: ada } } },
  }),
  example(MakeInstanceRequest, {
    loopback: { summary: 'On the gateway’s own network', value: { instanceName: 'office' } },
    xmpp: {
      summary: 'On XMPP',
      value: {
        instanceName: 'support',
        transport: 'xmpp',
        connection: { jid: 'support@chat.example', password: '<PASSWORD>' },
        rejectCall: true,
        msgCall: 'Please write.',
      },
    },
  }),
  example(SetWebhookRequest, {
    two: {
      summary: 'Two kinds of events',
      value: {
        webhook: {
          enabled: true,
          url: 'https://example.com/hooks/messages',
          headers: { 'X-Office': 'Paris' },
          events: ['messages.upsert', 'MESSAGES_UPDATE'],
        },
      },
    },
  }),
  example(InstanceGoneAnswer, {
    logout: { summary: 'After logout', value: gone('Instance logged out') },
    delete: { summary: 'After delete', value: gone('Instance deleted') },
  }),
  example(InstanceDeliveries, {
    second: {
      summary: 'Delivered at the second attempt',
      value: {
        deliveries: [
          {
            event: 'messages.upsert',
            deliveryId: 'evt_1795282462044-0',
            status: 'delivered',
            nextAttemptAt: null,
            attempts: [
              {
                at: '2026-11-21T17:34:22.051Z',
                httpStatus: 503,
                latencyMs: 31,
                error: 'the receiver answered 503',
              },
              { at: '2026-11-21T17:34:27.102Z', httpStatus: 204, latencyMs: 12, error: null },
            ],
          },
        ],
      },
    },
  }),
]);

function gone(message: string): InstanceGoneAnswer {
  return { status: 'SUCCESS', error: false, response: { message } };
}

export function examplesOf(schema: z.ZodType): Examples | undefined {
  return examplesAmong(schema, known);
}
