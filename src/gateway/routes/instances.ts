/** Instance management (decisions B "Instances"). */

import { parseAddress } from 'soundpost-chat/address';
import type { Instance } from 'soundpost-chat/instances';
import type { Pairing } from 'soundpost-chat/transport';
import {
  type ConnectionState,
  ConnectionStateAnswer,
  ConnectQuery,
  FetchInstancesQuery,
  type InstanceAnswer,
  InstanceGoneAnswer,
  ListedInstance,
  PairingAnswer,
  PublicListedInstance,
  settingsAnswer,
} from 'soundpost-contract/gateway-instances';
import { foreignSwitches } from 'soundpost-contract/gateway-switches';
import { MakeInstanceAnswer, MakeInstanceRequest } from 'soundpost-contract/gateway-webhooks';
import { z } from 'zod';
import { type Route, route } from '../route.ts';
import type { GatewayServices } from '../services.ts';
import type { Sessions } from '../sessions.ts';
import { keepWebhook, requireReachable } from './webhook.ts';

export function instanceRoutes(services: GatewayServices): Route[] {
  return [...management(services), ...connection(services)];
}

function management(services: GatewayServices): Route[] {
  const { audit, instances, sessions, log, webhooks, deliveries, answersAsPublic } = services;
  // There an instance's token can also list and delete it.
  const managing = answersAsPublic ? 'instance' : 'gateway';
  return [
    createInstance(services),
    route({
      method: 'get',
      path: '/instance/fetchInstances',
      access: managing,
      docs: {
        operationId: 'fetchInstances',
        summary: 'List instances, without their tokens',
        tag: 'Instances',
        answer: {
          status: 200,
          description: 'All of them, the oldest first',
          body: z.array(answersAsPublic ? PublicListedInstance : ListedInstance),
        },
        errors: [],
      },
      query: FetchInstancesQuery,
      async run({ own, query: { instanceName, instanceId } }) {
        const wanted = (own ? [own] : await instances.list()).filter(
          ({ id, name }) => (!instanceName || name === instanceName) && (!instanceId || id === instanceId),
        );
        return (await sessions.states(wanted)).map((one) => {
          const { status, ...described } = describe(one);
          return {
            ...described,
            ...(answersAsPublic ? {} : { status }),
            id: one.instance.id,
            name: one.instance.name,
            connectionStatus: one.state,
            ownerJid: one.ownJid || null,
          };
        });
      },
    }),
    route({
      method: 'delete',
      path: '/instance/delete/:instance',
      access: managing,
      docs: {
        operationId: 'deleteInstance',
        summary: 'Delete an instance and its messages',
        tag: 'Instances',
        answer: { status: 200, description: 'It is gone', body: InstanceGoneAnswer },
        errors: [],
      },
      async run({ instance }) {
        // The record goes last, so that a failed removal can be repeated.
        await sessions.remove(instance);
        await webhooks.remove(instance);
        await deliveries.forget(instance);
        await log.forget(instance.id);
        await instances.remove(instance);
        audit({ event: 'key revoked', key: `instance:${instance.id}` });
        return gone('Instance deleted');
      },
    }),
  ];
}

function createInstance(services: GatewayServices): Route {
  const { audit, instances, sessions, outbound, logger } = services;
  return route({
    method: 'post',
    path: '/instance/create',
    access: 'gateway',
    docs: {
      operationId: 'createInstance',
      summary: 'Create an instance',
      description:
        'Only this response shows the token. On whatsapp, the instance connects when you tell it to, or with `qrcode`; on other networks it connects at once. Unknown fields are ignored. Unsupported fields of the public server are rejected with 400, unless they are off or empty: `proxy…`, `chatwoot…` and other integrations, `websocket`, `rabbitmq`, `sqs`, `nats`, `kafka`, `pusher`, `wavoipToken` and `businessId`.',
      tag: 'Instances',
      answer: {
        status: 201,
        description: 'The instance, its token and its settings',
        body: MakeInstanceAnswer,
      },
      errors: ['name_in_use', 'unsupported'],
    },
    body: MakeInstanceRequest,
    foreign: foreignSwitches.instance,
    async run({ body }) {
      const { webhook, qrcode, number, ...request } = body;
      const pairingNumber = qrcode ? digitsOf(number) : undefined;
      await sessions.requireUsable(request.transport);
      if (webhook) {
        await requireReachable(webhook, outbound);
      }
      const { instance, token } = await instances.create(request);
      audit({ event: 'key created', key: `instance:${instance.id}` });
      // Before it connects, so that its first events are told.
      const kept = webhook && (await keepWebhook(instance, webhook, services));
      // It is made, whether it can be connected or not: its token is answered this once.
      const connected = qrcode
        ? await connect(instance, pairingNumber, sessions).catch((error: unknown) => {
            logger.warn({ err: error, instance: instance.name }, 'a new instance could not be connected');
            return undefined;
          })
        : undefined;
      const state = await sessions.state(instance);
      return {
        instance: describe({ instance, state }),
        hash: token,
        settings: settingsAnswer(instance.settings),
        ...(kept && { webhook: kept }),
        ...(connected?.pairing && { qrcode: connected.pairing }),
      };
    },
  });
}

/** Throws bad_request. */
const digitsOf = (number: string | null | undefined): string | undefined =>
  number ? parseAddress(number, 'number').digits : undefined;

/** Starts connecting. @returns what to pair the instance with, if its network pairs */
async function connect(
  instance: Instance,
  pairingNumber: string | undefined,
  sessions: Sessions,
): Promise<{ readonly current: Instance; readonly pairing: Pairing | undefined }> {
  const current = await sessions.connect(instance, pairingNumber);
  return { current, pairing: (await sessions.of(current)).pairing?.() };
}

function connection({ sessions }: GatewayServices): Route[] {
  return [
    route({
      method: 'get',
      path: '/instance/connect/:instance',
      access: 'instance',
      changes: true,
      docs: {
        operationId: 'connectInstance',
        summary: 'Connect an instance to its network',
        description:
          'Until a phone is paired with the instance, the response has the pairing code and its QR code. Otherwise it has the state.',
        tag: 'Instances',
        answer: {
          status: 200,
          description: 'What to pair it with, or its state',
          body: z.union([PairingAnswer, ConnectionStateAnswer]),
        },
        errors: ['network_refused', 'unsupported'],
      },
      query: ConnectQuery,
      async run({ instance, query: { number } }) {
        const { current, pairing } = await connect(instance, digitsOf(number), sessions);
        return pairing ?? stateAnswer(current, sessions);
      },
    }),
    route({
      method: 'get',
      path: '/instance/connectionState/:instance',
      access: 'instance',
      docs: {
        operationId: 'fetchConnectionState',
        summary: 'Read the state of an instance',
        tag: 'Instances',
        answer: { status: 200, description: 'Its state', body: ConnectionStateAnswer },
        errors: [],
      },
      run: ({ instance }) => stateAnswer(instance, sessions),
    }),
    route({
      method: 'post',
      path: '/instance/restart/:instance',
      access: 'instance',
      docs: {
        operationId: 'restartInstance',
        summary: 'Reconnect an instance',
        description: 'An open instance stays open. The instance keeps its pairing.',
        tag: 'Instances',
        answer: { status: 200, description: 'Its state', body: ConnectionStateAnswer },
        errors: ['network_refused', 'unsupported'],
      },
      async run({ instance }) {
        return stateAnswer(await sessions.connect(instance), sessions);
      },
    }),
    route({
      method: 'delete',
      path: '/instance/logout/:instance',
      access: 'instance',
      docs: {
        operationId: 'logoutInstance',
        summary: 'Disconnect an instance',
        description: 'It keeps its name, token and settings. It stays disconnected until you connect it.',
        tag: 'Instances',
        answer: { status: 200, description: 'It is off', body: InstanceGoneAnswer },
        errors: [],
      },
      async run({ instance }) {
        await sessions.logout(instance);
        return gone('Instance logged out');
      },
    }),
  ];
}

async function stateAnswer(instance: Instance, sessions: Sessions): Promise<ConnectionStateAnswer> {
  const state = await sessions.state(instance);
  const reason = state === 'open' ? undefined : sessions.reason(instance);
  return { instance: { instanceName: instance.name, state, ...(reason === undefined ? {} : { reason }) } };
}

function gone(message: string): InstanceGoneAnswer {
  return { status: 'SUCCESS', error: false, response: { message } };
}

function describe({ instance, state }: { instance: Instance; state: ConnectionState }): InstanceAnswer {
  return {
    instanceName: instance.name,
    instanceId: instance.id,
    transport: instance.transport,
    status: state,
  };
}
