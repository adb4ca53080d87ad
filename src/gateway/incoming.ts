/** Logs and announces networks' reports: messages, edits, presences, calls, groups, connections. */
import { createHash } from 'node:crypto';
import { deadline } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import { parseAddress } from 'soundpost-chat/address';
import { appendEvent, envelope } from 'soundpost-chat/event-stream';
import type { Instance, Instances } from 'soundpost-chat/instances';
import type { MessageLog } from 'soundpost-chat/message-log';
import type {
  IncomingCall,
  IncomingContent,
  IncomingEdit,
  IncomingMessage,
  IncomingVideo,
  Pairing,
  ParticipantsChange,
  Presence,
  StatusDetails,
  TransportReports,
} from 'soundpost-chat/transport';
import type { MessageContent } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { GatewayEventData, GatewayEventName } from 'soundpost-contract/gateway-events';
import type { ConnectionState } from 'soundpost-contract/gateway-instances';
import type { MessageStatus } from 'soundpost-contract/job';
import { awayReason } from 'soundpost-kit/observe/away';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import type { Sessions } from './sessions.ts';
import type { TextSender } from './text-sender.ts';
import type { AudioInput, VoiceNotes } from './voice-notes.ts';

interface IncomingOptions {
  readonly redis: Redis;
  readonly instances: Instances;
  readonly sessions: Sessions;
  readonly log: MessageLog;
  readonly notes: VoiceNotes;
  readonly texts: TextSender;
  readonly workspaces: Workspaces;
  /** Aborted when the gateway stops, or its lease is lost. */
  readonly closing: AbortSignal;
  readonly logger: Logger;
}

/** As WhatsApp's libraries number the ends of connections, after HTTP: 428 and 500. */
const CONNECTION_CLOSED = 428;
const PAIRING_ENDED = 500;
const NOT_PAIRED = 'nobody paired the instance while its codes were valid; connect it again for new ones';

/** Limit for fetching and preparing received media. */
const FETCH_TIMEOUT_MS = 60_000;

export class Incoming implements TransportReports {
  readonly #options: IncomingOptions;

  constructor(options: IncomingOptions) {
    this.#options = options;
  }

  async statusChanged(
    instanceId: string,
    messageId: string,
    status: MessageStatus,
    details?: StatusDetails,
  ): Promise<void> {
    const { log, instances } = this.#options;
    const looks = status !== 'READ' && status !== 'PLAYED';
    // `readStatus`: whether the instance sees that its messages were read or played.
    if (
      looks ||
      (await instances.find(instanceId))?.settings.readStatus ||
      !(await this.#isOwn(instanceId, messageId))
    ) {
      await log.advance(instanceId, messageId, status, details);
    }
  }

  async messageArrived(instanceId: string, incoming: IncomingMessage): Promise<void> {
    const { log, instances, sessions } = this.#options;
    const instance = await instances.find(instanceId);
    if (instance === undefined || (incoming.isGroup && instance.settings.groupsIgnore && !incoming.fromMe)) {
      return;
    }
    const fromMe = incoming.fromMe ?? false;
    // A repeated message is not fetched again.
    const known = await log.find(instanceId, incoming.messageId);
    const message = known?.message ?? (await this.#contentOf(incoming.content, instance));
    if (message === undefined) {
      return;
    }
    const record = await log.intend(
      {
        instanceId,
        instanceName: instance.name,
        ownJid: await sessions.ownJid(instance),
        key: {
          remoteJid: incoming.chatJid,
          fromMe,
          id: incoming.messageId,
          ...(incoming.isGroup && { participant: incoming.authorJid }),
        },
        ...(fromMe
          ? { fromOtherDevice: true }
          : { authorJid: incoming.authorJid, authorName: incoming.authorName }),
        timestampSeconds: incoming.timestampSeconds,
        message,
        context: incoming.context,
      },
      fromMe ? 'SERVER_ACK' : 'DELIVERY_ACK',
    );
    await log.settle(record, incoming.isHistory);
  }

  async messageEdited(instanceId: string, { messageId, authorJid, text }: IncomingEdit): Promise<void> {
    const { log } = this.#options;
    const logged = await log.find(instanceId, messageId);
    // Only its author can edit a message.
    if (logged !== undefined && (logged.authorJid ?? logged.ownJid) === authorJid) {
      await log.edit(logged, text);
    }
  }

  async presenceChanged(
    instanceId: string,
    chatJid: string,
    presence: Presence,
    whoseJid?: string,
  ): Promise<void> {
    await this.#announce(instanceId, 'presence.update', (ownJid) => ({
      id: chatJid,
      presences: { [whoseJid ?? ownJid]: { lastKnownPresence: presence } },
    }));
  }

  async connectionChanged(
    instanceId: string,
    state: ConnectionState,
    reason?: string,
    statusReason: number = state === 'close' ? CONNECTION_CLOSED : 200,
  ): Promise<void> {
    const { sessions } = this.#options;
    sessions.noteChange(instanceId, state, reason);
    await this.#announce(instanceId, 'connection.update', async (wuid, instance) => ({
      instance: instance.name,
      state,
      ...(reason === undefined ? {} : { reason }),
      statusReason,
      ...(state === 'open' && {
        wuid,
        profileName: (await sessions.of(instance)).ownName ?? null,
        profilePictureUrl: null,
      }),
    }));
  }

  async pairingChanged(instanceId: string, pairing: Pairing | undefined): Promise<void> {
    if (pairing !== undefined) {
      const { count: _count, ...code } = pairing;
      await this.#announce(instanceId, 'qrcode.updated', (_ownJid, { name }) => ({
        qrcode: { instance: name, ...code },
      }));
      return;
    }
    await this.#announce(instanceId, 'qrcode.updated', () => ({
      message: NOT_PAIRED,
      statusCode: PAIRING_ENDED,
    }));
    await this.#announce(instanceId, 'connection.update', (_ownJid, { name }) => ({
      instance: name,
      state: 'refused',
      reason: NOT_PAIRED,
      statusReason: CONNECTION_CLOSED,
    }));
  }

  async callChanged(instanceId: string, call: IncomingCall): Promise<void> {
    await this.#announceCall(instanceId, call);
    const instance = await this.#options.instances.find(instanceId);
    if (call.status === 'offer' && instance?.settings.rejectCall) {
      await this.#reject(instance, call);
    }
  }

  async participantsChanged(instanceId: string, change: ParticipantsChange): Promise<void> {
    await this.#announce(instanceId, 'group-participants.update', async (_ownJid, instance) => ({
      id: change.groupJid,
      author: change.authorJid ?? null,
      participants: [...change.participants],
      action: change.action,
      participantsData: await this.#known(instance, change.participants),
    }));
  }

  /** People as the address book has them; what it cannot say is null. */
  async #known(
    instance: Instance,
    jids: readonly string[],
  ): Promise<GatewayEventData['group-participants.update']['participantsData']> {
    const session = await this.#options.sessions.of(instance);
    // An event must not be lost because the network cannot be asked.
    const contacts = await session.contacts().catch(() => []);
    return jids.map((jid) => {
      const contact = contacts.find((one) => one.jid === jid);
      const [phoneNumber = ''] = jid.split('@');
      return { jid, phoneNumber, name: contact?.name ?? null, imgUrl: contact?.profilePicUrl ?? null };
    });
  }

  async #isOwn(instanceId: string, messageId: string): Promise<boolean> {
    const { log } = this.#options;
    const id = (await log.idOf(instanceId, messageId)) ?? messageId;
    return (await log.find(instanceId, id))?.key.fromMe ?? false;
  }

  async #contentOf(content: IncomingContent, instance: Instance): Promise<MessageContent | undefined> {
    switch (content.kind) {
      case 'text':
        return { conversation: content.text };
      case 'kept':
        return content.message;
      case 'file':
        return this.#media({ kind: 'file', path: content.path }, content.video, instance);
      case 'url': {
        const { url, video, fallback } = content;
        return (await this.#media({ kind: 'url', url }, video, instance)) ?? { conversation: fallback };
      }
    }
  }

  /** undefined if it is no audio or unavailable. Throws if a file meets a part of ours away. */
  async #media(
    file: AudioInput,
    video: IncomingVideo | undefined,
    instance: Instance,
  ): Promise<MessageContent | undefined> {
    const { notes, workspaces, closing, logger } = this.#options;
    using limit = deadline(FETCH_TIMEOUT_MS, { signal: closing });
    try {
      return await workspaces.use('received', async (workspace) => {
        if (video !== undefined) {
          return { videoMessage: await notes.keepVideo({ file, video, workspace }, limit.signal) };
        }
        const note = { audio: file, workspace, keepsOpus: true };
        return { audioMessage: (await notes.make(note, limit.signal)).audioMessage };
      });
    } catch (error) {
      closing.throwIfAborted();
      const cause = error instanceof GatewayError ? error.cause : error;
      // Its transport reports it again. Of a URL there is the text instead.
      if (file.kind === 'file' && awayReason(cause) !== undefined) throw cause;
      logger.warn({ err: error, instance: instance.name }, 'what somebody sent is nothing that can be kept');
      return undefined;
    }
  }

  async #reject(instance: Instance, call: IncomingCall): Promise<void> {
    const { sessions, texts, logger } = this.#options;
    const session = await sessions.of(instance);
    if (session.rejectCall === undefined) {
      logger.warn({ instance: instance.name }, 'this network cannot reject calls');
      return;
    }
    await session.rejectCall(call);
    await this.#announceCall(instance.id, { ...call, status: 'reject' });
    const { msgCall } = instance.settings;
    const sendText = session.sendText?.bind(session);
    if (msgCall === '' || sendText === undefined) {
      return;
    }
    try {
      const chat = await session.resolve(parseAddress(call.fromJid, 'from'), 'from');
      // Derived from the call's id, so that a call reported twice is answered once.
      const messageId = createHash('sha256')
        .update(`${instance.id} ${call.callId}`)
        .digest('hex')
        .slice(0, 32);
      await texts.send(
        instance,
        session,
        [{ messageId: messageId.toUpperCase(), chat, text: msgCall }],
        sendText,
      );
    } catch (error) {
      // A rate-limited answer to a call is dropped.
      if (!(error instanceof GatewayError)) throw error;
      logger.warn({ err: error, instance: instance.name }, 'a rejected call was not answered');
    }
  }

  async #announceCall(instanceId: string, call: IncomingCall): Promise<void> {
    await this.#announce(instanceId, 'call', () => ({
      id: call.callId,
      from: call.fromJid,
      chatId: call.chatJid ?? call.fromJid,
      date: new Date(call.timestampSeconds * 1000).toISOString(),
      isVideo: call.isVideo,
      isGroup: call.isGroup ?? false,
      offline: call.isOffline ?? false,
      status: call.status,
    }));
  }

  async #announce<Name extends GatewayEventName>(
    instanceId: string,
    event: Name,
    data: (ownJid: string, instance: Instance) => GatewayEventData[Name] | Promise<GatewayEventData[Name]>,
  ): Promise<void> {
    const { redis, instances, sessions } = this.#options;
    const instance = await instances.find(instanceId);
    if (instance === undefined || sessions.isRemoved(instanceId)) {
      return;
    }
    const ownJid = await sessions.ownJid(instance);
    await appendEvent(redis, {
      instanceId,
      event,
      envelope: envelope(instance, ownJid, event, await data(ownJid, instance)),
    });
  }
}
