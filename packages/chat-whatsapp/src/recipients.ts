/** Finds the account or group of a number, in the form that WhatsApp knows. */

import { type Address, mayMean, parseAddress } from 'soundpost-chat/address';
import type { Chat } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { AddressBook } from './address-book.ts';
import type { Line } from './connection.ts';
import { type Groups, groupJidOf } from './groups.ts';
import type { Identities } from './identities.ts';
import { asked } from './network-request.ts';
import { bareJid, isGroupJid, LID_SUFFIX, personJid, suffixes, userOf } from './phone-jid.ts';

// Numbers that WhatsApp knows in another form than people write. An account keeps the number it
// was created with, so both forms exist after a numbering plan has changed. Each rule lists the
// possible forms, the likeliest first; WhatsApp is asked for all of them (`onWhatsApp`).

interface NumberRule {
  readonly country: string;
  readonly source: string;
  /** With a country code; its groups are the arguments of `forms`. */
  readonly pattern: RegExp;
  /** The likeliest first. */
  readonly forms: (...parts: string[]) => readonly string[];
}

/** Area codes 11–28 (São Paulo, Rio de Janeiro, Espírito Santo) got the ninth digit first. */
const LAST_AREA_WITH_NINTH_DIGIT = 28;

export const numberRules: readonly NumberRule[] = [
  {
    country: 'Brazil',
    source:
      'Anatel, Resolução 553/2010: mobile numbers got a leading 9, area by area until November 2016; accounts of the later areas kept eight digits',
    // Eight-digit mobile numbers began with 6 to 9; landlines (2 to 5) never got the 9.
    pattern: /^55([1-9]\d)9?([6-9]\d{7})$/,
    forms: (area, subscriber) => {
      const [long, short] = [`55${area}9${subscriber}`, `55${area}${subscriber}`];
      return Number(area) <= LAST_AREA_WITH_NINTH_DIGIT ? [long, short] : [short, long];
    },
  },
  {
    country: 'Mexico',
    source:
      'WhatsApp Help Center "About international phone number format": 1 after +52; dropped from the numbering plan in August 2019 (IFT), so that newer accounts have none',
    pattern: /^521?(\d{10})$/,
    forms: (subscriber) => [`521${subscriber}`, `52${subscriber}`],
  },
  {
    country: 'Argentina',
    source:
      'WhatsApp Help Center, same page: 9 between country and area code, no 15 before the subscriber number, 13 digits in all',
    pattern: /^549?(\d{10})$/,
    forms: (subscriber) => [`549${subscriber}`, `54${subscriber}`],
  },
  {
    country: 'Argentina, written with the 15 of calls inside the country',
    source: 'as above; area codes have 2 to 4 digits, and area code and subscriber number 10 together',
    pattern: /^549?(?:(11)15(\d{8})|(\d{3})15(\d{7})|(\d{4})15(\d{6}))$/,
    forms: (...parts) => {
      const subscriber = parts.join('');
      return [`549${subscriber}`, `54${subscriber}`];
    },
  },
];

/** Forms in which WhatsApp may know a number, likeliest first. @param digits with country code */
export function numberForms(digits: string): readonly string[] {
  for (const { pattern, forms } of numberRules) {
    const match = pattern.exec(digits);
    if (match !== null) {
      return forms(...match.slice(1).filter((part) => part !== undefined));
    }
  }
  return [digits];
}

/** ITU-T E.164: a phone number has at most 15 digits, so a longer number is a group. */
const LONGEST_PHONE_NUMBER = 15;
/** Cached answers about numbers: repeated queries look like a search for victims. */
const REMEMBERED = 1000;

export class Recipients {
  readonly #book: AddressBook;
  readonly #groups: Groups;
  readonly #identities: Identities;
  readonly #known = new Map<string, string>();

  constructor(book: AddressBook, groups: Groups, identities: Identities) {
    this.#book = book;
    this.#groups = groups;
    this.#identities = identities;
  }

  /** Throws unknown_recipient. */
  async resolve(line: Line, address: Address, field: string): Promise<Chat> {
    const jid = isGroupAddress(address)
      ? await this.#group(line, address)
      : await this.#person(line, address);
    if (jid === undefined) {
      throw new GatewayError(
        'unknown_recipient',
        `${field}: WhatsApp has no person or group with this number`,
      );
    }
    return { jid, name: await this.#book.nameOf(jid), isGroup: isGroupJid(jid) };
  }

  /** Mentions in a group must use the participants' ids in that group. */
  async mentions(line: Line, chat: Chat, texts: readonly string[], everyone: boolean): Promise<string[]> {
    if (!chat.isGroup) {
      return texts.map((text) => mentionJid(parseAddress(text, 'mentioned')));
    }
    if (texts.length === 0 && !everyone) {
      return [];
    }
    const { participants } = await this.#groups.get(line, chat.jid);
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
      const metadata = await this.#groups.get(line, jid);
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
    if (address.suffix === LID_SUFFIX && address.digits !== '') {
      // WhatsApp cannot be asked whether there is such a LID; it refuses the message otherwise.
      return this.#identities.shown(`${address.digits}@${LID_SUFFIX}`);
    }
    if (address.digits === '' || !mayMean(address, 'person', suffixes)) {
      return undefined;
    }
    const known = this.#known.get(address.digits);
    if (known !== undefined) {
      return known;
    }
    const forms = numberForms(address.digits);
    // Whose LID is known has an account: they wrote, or are in a group with this one.
    const addresses = await Promise.all(forms.map((form) => this.#identities.addressesOf(personJid(form))));
    const met = addresses.find(({ length }) => length > 1)?.[0];
    if (met !== undefined) {
      return met;
    }
    const answers = (await asked('look the number up', line.socket.onWhatsApp(...forms))) ?? [];
    const accounts = new Map<string, string>();
    for (const { jid, exists } of answers) {
      const phone = exists ? await this.#identities.shown(jid) : undefined;
      if (phone !== undefined) {
        accounts.set(userOf(phone), phone);
      }
    }
    // The server may answer with a form that was not asked for: the account's own.
    const found =
      forms.map((form) => accounts.get(form)).find((jid) => jid !== undefined) ?? [...accounts.values()][0];
    if (found !== undefined) {
      // Asks WhatsApp if it is not known; Baileys keeps the answer, and sends go by it.
      await line.socket.signalRepository.lidMapping.getLIDForPN(found).catch(() => undefined);
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
