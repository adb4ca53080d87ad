/** Why an instance is not connected: what that means and what helps, then the gateway's own words. */
import { sentence } from '../../session.ts';
import { troubleOf } from './trouble.ts';

interface NotConnectedProps {
  readonly reason: string | undefined;
  /** Where it comes as an answer to what somebody did. */
  readonly role?: 'alert';
}

export function NotConnected({ reason, role }: NotConnectedProps) {
  const { meaning, remedy } = troubleOf(reason);
  return (
    <div class="reason" role={role}>
      <p>
        <strong>{meaning}</strong> {remedy}
      </p>
      {reason === undefined ? null : <p class="told">The gateway says: {sentence({ message: reason })}</p>}
    </div>
  );
}
