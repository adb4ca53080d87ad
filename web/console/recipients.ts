/** Whom something was sent to in this tab, and from where. */

const STORE = 'soundpost.console.recipients';
const MOST = 8;

export interface SentTo {
  readonly instance: string;
  /** A number or a JID. */
  readonly to: string;
  /** As it was picked; the same as `to` where it was typed. */
  readonly name: string;
}

/** The latest first. */
export function recentRecipients(): readonly SentTo[] {
  return JSON.parse(sessionStorage.getItem(STORE) ?? '[]');
}

export function keepRecipient(recipient: SentTo): void {
  const others = recentRecipients().filter(
    ({ instance, to }) => instance !== recipient.instance || to !== recipient.to,
  );
  sessionStorage.setItem(STORE, JSON.stringify([recipient, ...others].slice(0, MOST)));
}

/** When somebody signs out: another key opens other instances. */
export function forgetRecipients(): void {
  sessionStorage.removeItem(STORE);
}
