/** Finds who is meant by a number: which form of it WhatsApp knows, or which of the account's groups. */

import { type Address, mayMean, parseAddress } from 'soundpost-chat/address';
import type { Chat } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { AddressBook } from './address-book.ts';
import type { Line } from './connection.ts';
import { type Groups, groupJidOf } from './groups.ts';
import { asked } from './network-request.ts';
import { numberForms } from './number-rules.ts';
import { bareJid, isGroupJid, LID_SUFFIX, personJid, phoneJid, suffixes, userOf } from './phone-jid.ts';

/** ITU-T E.164: a telephone number has 15 digits at most, so a longer one is a group's. */
const LONGEST_PHONE_NUMBER = 15;
/** Answers about numbers that are remembered; asking for the same ones again and again looks like a search for victims. */
const REMEMBERED = 1000;

export class Recipients {
  readonly #book: AddressBook;
  readonly #groups: Groups;
  readonly #known = new Map<string, string>();

  constructor(book: AddressBook, groups: Groups) {
    this.#book = book;
    this.#groups = groups;
  }

  /** Throws unknown_recipient. */
  async resolve(line: Line, address: Address, field: string): Promise<Chat> {
    const jid = isGroupAddress(address)
      ? await this.#group(line, address)
      : await this.#person(line, address);
    if (jid === undefined) {
      throw new GatewayError(
        'unknown_recipient',
        `${field}: WhatsApp knows nobody and no group with this number`,
      );
    }
    return { jid, name: await this.#book.nameOf(jid), isGroup: isGroupJid(jid) };
  }

  /** Mentions in a group have to name participants as the group knows them. */
  async mentions(line: Line, chat: Chat, texts: readonly string[], everyone: boolean): Promise<string[]> {
    if (!chat.isGroup) {
      return texts.map((text) => mentionJid(parseAddress(text, 'mentioned')));
    }
    if (texts.length === 0 && !everyone) {
      return [];
    }
    const { participants } = await this.#groups.get(line.socket, chat.jid);
    if (everyone) {
      return participants.map(({ id }) => id);
    }
    return texts.map((text) => {
      const address = parseAddress(text, 'mentioned');
      const forms = new Set([address.digits, ...numberForms(address.digits)]);
      const found = participants.find(
        ({ id, phoneNumber }) => forms.has(userOf(id)) || (phoneNumber && forms.has(userOf(phoneNumber))),
      );
      return found?.id ?? mentionJid(address);
    });
  }

  async #group(line: Line, address: Address): Promise<string | undefined> {
    const jid = groupJidOf(address);
    if ((await this.#book.subjectOf(jid)) !== undefined) {
      return jid;
    }
    try {
      const metadata = await this.#groups.get(line.socket, jid);
      await this.#book.learnGroups([metadata]);
      return jid;
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'group_not_found') {
        return undefined;
      }
      throw error;
    }
  }

  async #person(line: Line, address: Address): Promise<string | undefined> {
    if (address.suffix === LID_SUFFIX) {
      const jid = await phoneJid(line, bareJid(address.text));
      return jid?.endsWith(`@${LID_SUFFIX}`) ? undefined : jid;
    }
    if (address.digits === '' || !mayMean(address, 'person', suffixes)) {
      return undefined;
    }
    const known = this.#known.get(address.digits);
    if (known !== undefined) {
      return known;
    }
    const forms = numberForms(address.digits);
    const answers = (await asked('look the number up', line.socket.onWhatsApp(...forms))) ?? [];
    const accounts = new Map<string, string>();
    for (const { jid, exists } of answers) {
      const phone = exists ? await phoneJid(line, jid) : undefined;
      if (phone !== undefined) {
        accounts.set(userOf(phone), phone);
      }
    }
    // The server may answer with a form that was not asked for; that one is the account's own.
    const found =
      forms.map((form) => accounts.get(form)).find((jid) => jid !== undefined) ?? [...accounts.values()][0];
    if (found !== undefined) {
      this.#remember(address.digits, found);
    }
    return found;
  }

  #remember(digits: string, jid: string): void {
    const oldest = this.#known.keys().next().value;
    if (this.#known.size >= REMEMBERED && oldest !== undefined) {
      this.#known.delete(oldest);
    }
    this.#known.set(digits, jid);
  }
}

function isGroupAddress({ suffix, digits }: Address): boolean {
  return suffix === suffixes.group || (suffix === undefined && digits.length > LONGEST_PHONE_NUMBER);
}

function mentionJid({ text, digits, suffix }: Address): string {
  return suffix === LID_SUFFIX ? bareJid(text) : personJid(numberForms(digits)[0] ?? digits);
}
