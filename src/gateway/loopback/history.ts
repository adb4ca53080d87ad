/** `syncFullHistory`: everything that the network remembers of an instance and of its groups. */
import type { Instance } from 'soundpost-chat/instances';
import type { TransportReports } from 'soundpost-chat/transport';
import { personJid } from './addresses.ts';
import type { Archive } from './archive.ts';
import type { Directory } from './directory.ts';
import { incoming, Relayed } from './relay.ts';

interface HistoryOptions {
  readonly instance: Instance;
  /** The instance's own number. */
  readonly digits: string;
  readonly directory: Directory;
  readonly archive: Archive;
  readonly reports: TransportReports;
}

/** What the instance has already is told again and changes nothing. */
export async function reportHistory(options: HistoryOptions): Promise<void> {
  const { archive, directory, instance, digits, reports } = options;
  const { groups } = await directory.placeOf(instance);
  for (const owner of [digits, ...groups]) {
    for (const message of await archive.of(owner, Relayed)) {
      const fromMe = message.from.digits === digits;
      const chatJid = fromMe && !message.to.isGroup ? { chatJid: personJid(message.to.digits) } : {};
      await reports.messageArrived(instance.id, incoming(message, { ...chatJid, fromMe, isHistory: true }));
    }
  }
}
