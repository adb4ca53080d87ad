/** Shows whether an instance is online, typing or recording. */
import type { Instance } from 'soundpost-chat/instances';
import type { Chat, Presence, TransportReports } from 'soundpost-chat/transport';
import { type Directory, digitsOf, personJid } from './directory.ts';
import type { Groups } from './groups.ts';

interface PresencesOptions {
  readonly instance: Instance;
  /** The instance's own number. */
  readonly digits: string;
  readonly directory: Directory;
  readonly groups: Groups;
  readonly reports: TransportReports;
}

export class Presences {
  readonly #options: PresencesOptions;

  constructor(options: PresencesOptions) {
    this.#options = options;
  }

  /** In a chat: to its own inbox, where the people look, and to instances on the other side. */
  async show(chat: Chat, presence: Presence): Promise<void> {
    const { directory, reports, instance, digits } = this.#options;
    if (!chat.isGroup && (await directory.apart(digits, digitsOf(chat.jid)))) {
      return;
    }
    const ownJid = personJid(digits);
    await reports.presenceChanged(instance.id, chat.jid, presence);
    for (const instanceId of await this.#instancesIn(chat)) {
      await reports.presenceChanged(instanceId, chat.isGroup ? chat.jid : ownJid, presence, ownJid);
    }
  }

  /** To everyone on the network, unless either has blocked the other. */
  async showAvailable(available: boolean): Promise<void> {
    const { directory, digits, instance, reports } = this.#options;
    if (!(await directory.setAvailable(digits, available))) {
      return;
    }
    const ownJid = personJid(digits);
    const presence = available ? 'available' : 'unavailable';
    await reports.presenceChanged(instance.id, ownJid, presence);
    for (const other of await directory.instances()) {
      if (other.digits !== digits && !(await directory.apart(digits, other.digits))) {
        await reports.presenceChanged(other.instanceId, ownJid, presence, ownJid);
      }
    }
  }

  async #instancesIn(chat: Chat): Promise<string[]> {
    const { directory, groups, digits } = this.#options;
    const group = chat.isGroup ? await groups.find(digitsOf(chat.jid)) : undefined;
    const others = chat.isGroup
      ? (group?.participants ?? []).map((participant) => participant.digits)
      : [digitsOf(chat.jid)];
    const members = await Promise.all(
      others.filter((other) => other !== digits).map((other) => directory.member(other)),
    );
    return members.flatMap((member) => (member?.instanceId ? [member.instanceId] : []));
  }
}
