/** What is promised of accounts on WhatsApp. */
import type { Fault } from './fault.ts';

const connection = ['test/gateway/whatsapp/connection.test.ts'];
const operations = ['test/gateway/whatsapp/operations.test.ts'];
const incoming = ['test/gateway/whatsapp/incoming.test.ts'];

export const whatsappFaults: readonly Fault[] = [
  {
    name: 'retired-picture-shown-on',
    promise: 'whatsapp.md "Pairing": the next picture carries the new secret',
    in: 'PairingOffer.show',
    search: 'withSecret(qr, this.#secret)',
    replace: 'withSecret(qr, qr.split(",").at(-2) ?? "")',
    tests: connection,
  },
  {
    name: 'pairing-code-before-the-answer',
    promise: 'whatsapp.md "Pairing": the answer comes once WhatsApp has accepted the code',
    in: 'PairingOffer.#askForCode',
    search: "answered === undefined || answered.attrs.type === 'error'",
    replace: "answered?.attrs.type === 'none'",
    tests: connection,
  },
  {
    name: 'written-to-by-number',
    promise: 'whatsapp.md "People without a visible number": messages go to the LID where it is known',
    in: 'Identities.addressed',
    search: 'return lid === undefined ? jid : `${lid}@${LID_SUFFIX}`;',
    replace: 'return lid === undefined ? jid : jid;',
    tests: operations,
  },
  {
    name: 'one-person-listed-twice',
    promise: 'whatsapp.md "People without a visible number": each person is listed once',
    in: 'AddressBook.#joined',
    search: 'const as = shown.get(jid) ?? jid;',
    replace: 'const as = shown.size > 0 ? jid : "";',
    tests: operations,
  },
  {
    name: 'old-timer-comes-back',
    promise: 'whatsapp.md "Disappearing messages": what is sent has the timer of the chat',
    in: 'Timers.learn',
    search: 'atSeconds >= (known?.atSeconds ?? 0)',
    replace: 'atSeconds >= 0',
    tests: operations,
  },
  {
    name: 'one-query-a-message',
    promise: 'whatsapp.md "Participants": one query a group until it changes, or for ten minutes',
    in: 'Groups.get',
    search: 'known !== undefined && known.untilMs > performance.now()',
    replace: 'known !== undefined && known.untilMs < 0',
    tests: operations,
  },
  {
    name: 'old-sender-key-kept',
    promise: 'whatsapp.md "Participants": when members change, the next message gets a new sender key',
    in: 'Groups.rekey',
    search: "'sender-key': Object.fromEntries(names.map((name) => [name, null])),",
    replace: '',
    tests: operations,
  },
  {
    name: 'recording-shown-once',
    promise: 'whatsapp.md "Presence": renewed every 10 seconds while a delay lasts',
    in: 'WhatsAppSession.showPresence',
    search: 'this.#renew(chat, presence);',
    replace: '',
    tests: operations,
  },
  {
    name: 'choice-without-event',
    promise: 'whatsapp.md: an answer by a button or from a list is a text',
    in: 'textOf',
    search: 'chosenIn(content);',
    replace: 'undefined;',
    tests: incoming,
  },
];
