/** What is in the data of the first edition: names, keys and what was answered then, for the test to ask again. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Json } from '../client.ts';
import { FIXTURE } from './outside.ts';
import { shiftTimes } from './shift-times.ts';

/** A request with its Idempotency-Key, and what it was answered; nothing where its server died first. */
export interface KeyedRequest {
  readonly idempotencyKey: string;
  readonly request: Json;
  readonly answer?: Json;
}

export interface Manifest {
  readonly takenAtMs: number;
  /** The commit that made it. */
  readonly madeBy: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly jobs: JobsManifest;
  readonly gateway: GatewayManifest;
}

export interface JobsManifest {
  /** API keys; `rotatedBefore` and `rotated` are one key before and after its rotation. */
  readonly keys: Readonly<Record<'alice' | 'bob' | 'rotatedBefore' | 'rotated' | 'revoked', string>>;
  /** Secrets of webhooks; `rotatedBefore` still signs for a day. */
  readonly secrets: Readonly<Record<'alice' | 'bob' | 'rotatedBefore' | 'rotated', string>>;
  /** Jobs as they were answered; each of their files by SHA-256. */
  readonly finished: readonly {
    readonly owner: 'alice' | 'bob';
    readonly job: Json;
    readonly deliveries: Json;
  }[];
  /** Its webhook was told, and is to be told once more: the owner wished so. */
  readonly failed: Json;
  readonly cancelled: Json;
  /** Ids by what is special about them. */
  readonly unfinished: Readonly<
    Record<
      | 'active'
      | 'cancelledActive'
      | 'cancelledWaiting'
      | 'webhookRefused'
      | 'webhookUnderWay'
      | 'voiceRefused'
      | 'voiceUnderWay',
      string
    >
  >;
  /** All waiting jobs, in the order in which they shall begin. */
  readonly waiting: readonly {
    readonly jobId: string;
    readonly owner: 'alice' | 'bob' | 'rotated';
    /** By start-time fair queueing. */
    readonly place: number;
  }[];
  /** The place of the job that was last given to a worker. */
  readonly virtualTime: number;
  readonly batchId: string;
  readonly uploads: {
    readonly complete: { readonly file: string; readonly size: number };
    /** By tus: so many bytes have arrived. */
    readonly incomplete: { readonly file: string; readonly offset: number; readonly size: number };
  };
  readonly idempotency: {
    readonly extract: KeyedRequest;
    readonly upload: KeyedRequest;
    /** The API was killed when the job was added and its answer was not kept. */
    readonly interrupted: KeyedRequest & { readonly jobId: string };
  };
}

/** A send with its Idempotency-Key. */
export interface KeyedSend extends KeyedRequest {
  readonly instance: string;
  /** Of a message that was begun, where nothing was answered. */
  readonly messageId?: string;
}

interface MessageName {
  readonly jid: string;
  readonly id: string;
}

export interface GatewayManifest {
  readonly instances: readonly {
    readonly name: string;
    readonly id: string;
    readonly token: string;
    readonly settings: Json;
    readonly webhook?: Json;
    readonly ownJid: string;
  }[];
  /** Of somebody who came to the inbox by its one-time link. */
  readonly inboxSession: string;
  /** As fetchInstances answered, before one of them was killed. */
  readonly shown: Json;
  readonly group: { readonly jid: string; readonly inviteCode: string };
  /** By studio. */
  readonly blockedJid: string;
  /** Chats as the inbox showed them, before the last messages came. */
  readonly history: readonly { readonly instance: string; readonly jid: string; readonly messages: Json }[];
  /** Messages of studio and of attic by what is special about them. */
  readonly messages: {
    readonly played: MessageName;
    readonly bounced: MessageName;
    /** For somebody who is away. */
    readonly waiting: MessageName;
    /** Taken by the network and not delivered. */
    readonly queued: MessageName;
    readonly ofAttic: readonly MessageName[];
  };
  readonly idempotency: {
    readonly replay: KeyedSend;
    readonly queued: KeyedSend;
    /** Refused: the key stays bound to its body. */
    readonly refused: KeyedSend;
    /** Killed before the network had the message. */
    readonly cutOff: KeyedSend;
    /** Killed when the server had taken the message and had not said so. */
    readonly inDoubt: KeyedSend;
  };
  /** Events of instances for their webhooks, by webhook-id. */
  readonly webhooks: {
    readonly delivered: readonly string[];
    /** In their order. */
    readonly pending: readonly { readonly id: string; readonly envelope: Json }[];
  };
  /** Events that GATEWAY_EVENTS_URL has still to be told, in their order. */
  readonly statuses: readonly string[];
  readonly xmpp: { readonly room: string; readonly firstId: string };
  /** A message that is kept for quotations. */
  readonly whatsapp: { readonly messageId: string; readonly creds: Json };
}

/** @param byMs by how much all moments are moved */
export async function readManifest(byMs: number): Promise<Manifest> {
  const text = await readFile(join(FIXTURE, 'manifest.json'), 'utf8');
  const { takenAtMs } = JSON.parse(text) as Manifest;
  return JSON.parse(shiftTimes(text, takenAtMs, byMs));
}
