/**
 * Refusals of the Bot API as errors for callers. The server's words: telegram-bot-api, Client.cpp.
 */
import { GatewayError, type GatewayErrorCode } from 'soundpost-contract/gateway-errors';
import { NoAnswer, Refused } from './api.ts';

type Meaning = readonly [words: RegExp, code: GatewayErrorCode, sentence: string];

const meanings: readonly Meaning[] = [
  [
    /chat not found|user not found|PEER_ID_INVALID/i,
    'unknown_recipient',
    'the bot has no chat with this id: a person has to write to the bot first, a group has to add it',
  ],
  [
    /can't initiate conversation/i,
    'network_refused',
    'a bot cannot begin a chat: the person has to write to it first',
  ],
  [/blocked by the user/i, 'network_refused', 'the person has blocked the bot'],
  [/user is deactivated/i, 'network_refused', 'the account of the person was deleted'],
  [/messages to (the )?bots?\b/i, 'network_refused', 'a bot cannot write to another bot'],
  [
    /bot was kicked|not a member/i,
    'network_refused',
    'the bot is not, or no longer, in this group or channel: add it again',
  ],
  [/group chat was deleted/i, 'network_refused', 'the group was deleted'],
  [
    /VOICE_MESSAGES_FORBIDDEN/i,
    'network_refused',
    'the person takes no voice messages, by their privacy settings',
  ],
  [
    /rights|CHAT_\w*FORBIDDEN|CHAT_ADMIN_REQUIRED/i,
    'network_refused',
    'the bot lacks the right to do this in the group or channel: give it to the bot or to all members',
  ],
  [
    /can't be edited|to edit not found|MESSAGE_ID_INVALID/i,
    'not_editable',
    'Telegram no longer lets the bot change it',
  ],
];

/** Of the server's words. */
const MOST_WORDS = 200;

/**
 * @param field that the request was about. Not for a {@link NoAnswer} to a send: that is unknown.
 */
export function refusal(field: string, error: unknown): unknown {
  if (error instanceof NoAnswer) {
    return new GatewayError('not_connected', `${error.message}; try again`, {
      retryAfterSeconds: 5,
      cause: error,
    });
  }
  if (!(error instanceof Refused)) return error;
  const { code, message, retryAfterSeconds } = error;
  if (code === 429) {
    return new GatewayError('rate_limited', 'Telegram asks the bot to send more slowly', {
      retryAfterSeconds: retryAfterSeconds ?? 1,
      cause: error,
    });
  }
  if (code === 401) {
    return new GatewayError('not_connected', REVOKED, { cause: error });
  }
  if (code === 413 || /too big/i.test(message)) {
    return new GatewayError('payload_too_large', TOO_LARGE, { cause: error });
  }
  const known = meanings.find(([words]) => words.test(message));
  const words = message.replace(/\p{Cc}+/gu, ' ').slice(0, MOST_WORDS);
  return new GatewayError(
    known?.[1] ?? 'network_refused',
    `${field}: ${known?.[2] ?? `Telegram refused this, in its words: ${words || code}`}`,
    { cause: error },
  );
}

export const REVOKED =
  'Telegram does not accept the bot token: it was revoked or is mistyped; delete the instance and create it with the token that @BotFather shows now';
export const TOO_LARGE = 'audio: Telegram takes voice messages of 50 MB at most';
