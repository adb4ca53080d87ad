/** What instances on Telegram promise (docs/telegram.md). */
import type { Fault } from './fault.ts';

const OPERATIONS = 'test/gateway/telegram/operations.test.ts';
const INCOMING = 'test/gateway/telegram/incoming.test.ts';

export const telegramFaults: readonly Fault[] = [
  {
    name: 'telegram-sends-again-after-a-lost-answer',
    promise: 'telegram.md "When something goes wrong": the answer was lost, so it is never sent again',
    in: 'Outgoing.#sendFailure',
    search: 'error instanceof NoAnswer ? error.maybeSent : signal.aborted',
    replace: 'error instanceof NoAnswer ? false : signal.aborted',
    tests: [OPERATIONS],
  },
  {
    name: 'telegram-drops-a-mention',
    promise: 'telegram.md "What each operation does": a mention that Telegram does not have answers 400',
    in: 'Outgoing.#marked',
    search: "else if (!('name' in target && ",
    replace: "else if (!('id' in target || ",
    tests: [OPERATIONS],
  },
  {
    name: 'telegram-hurries',
    promise: 'telegram.md "When something goes wrong": 429, wait for Retry-After',
    in: 'Outgoing.#untilTaken',
    search: 'if (leftMs <= 0) {',
    replace: 'if (leftMs <= 60_000) {',
    tests: [OPERATIONS],
  },
  {
    name: 'telegram-group-stays-behind',
    promise:
      'telegram.md "Chats and their ids": when a group becomes a supergroup the chat moves to the new id',
    in: 'Outgoing.moved',
    search: 'await log.moveChat(instanceId, old, now);',
    replace: '',
    tests: [OPERATIONS],
  },
  {
    name: 'telegram-takes-any-webhook',
    promise: 'telegram.md "How messages come in": with a secret that the gateway checks',
    in: 'createTelegramTransport',
    search: '!isSameSecret(given, open.connection.secretToken)',
    replace: '!isSameSecret(given, given)',
    tests: [INCOMING],
  },
  {
    name: 'telegram-takes-over-a-webhook',
    promise:
      'telegram.md "How messages come in": if another program receives its updates, the instance closes',
    in: 'Connection.#open',
    search: "if (url !== '' && !url.endsWith(this.#ownPath)) throw new Refused(409, FOREIGN_WEBHOOK);",
    replace: '',
    tests: [INCOMING],
  },
  {
    name: 'telegram-action-shown-once',
    promise: 'telegram.md "What each operation does": "recording" for as long as the delay, renewed',
    in: 'ChatActions.show',
    search: 'this.#renewLater(chatId, signal, once, MOST_RENEWALS);',
    replace: '',
    tests: ['packages/chat-telegram/test/chat-actions.test.ts'],
  },
  {
    name: 'telegram-video-becomes-sound',
    promise: 'gateway.md "Webhooks of instances": a video that came in is told as it is',
    in: 'Incoming.#fetch',
    search: "return { kind: 'file', path, video: media.video };",
    replace: "return { kind: 'file', path };",
    tests: [INCOMING],
  },
];
