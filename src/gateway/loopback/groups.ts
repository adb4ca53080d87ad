/** Groups of the loopback network: members and invite codes. */
import { randomBytes } from 'node:crypto';
import { changeRecord, readRecord } from 'soundpost-chat/instances';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { Redis } from 'soundpost-kit/redis/connection';
import { z } from 'zod';

const Participant = z.object({ digits: z.string(), admin: z.enum(['superadmin', 'admin']).nullable() });

const Group = z.object({
  subject: z.string(),
  participants: z.array(Participant),
  /** Groups older than codes get one on demand. */
  inviteCode: z.string().optional(),
});
export type Group = z.infer<typeof Group>;

export const GROUPS = gatewayKey('loopback', 'groups');
const groupOf = (digits: string) => ({ key: GROUPS, field: digits, schema: Group });

/** Contains its group, so redeeming needs no index; useless without the random part. */
export function newInviteCode(groupDigits: string): string {
  const group = Buffer.from(BigInt(groupDigits).toString(16).padStart(16, '0'), 'hex');
  return Buffer.concat([group, randomBytes(12)]).toString('base64url');
}

function groupOfCode(code: string): string | undefined {
  const bytes = Buffer.from(code, 'base64url');
  return bytes.length === 20 ? String(bytes.readBigUInt64BE(0)) : undefined;
}

export class Groups {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  find(digits: string): Promise<Group | undefined> {
    return readRecord(this.#redis, groupOf(digits));
  }

  /** The current code. @param renew replaces it and revokes the old one */
  async inviteCode(digits: string, renew: boolean): Promise<string> {
    const group = await changeRecord(this.#redis, groupOf(digits), (known) => ({
      ...known,
      inviteCode: (renew ? undefined : known.inviteCode) ?? newInviteCode(digits),
    }));
    if (group?.inviteCode === undefined) {
      throw groupNotFound('groupJid');
    }
    return group.inviteCode;
  }

  /** Adds a member. Answers the group's digits and whether it is new. Throws group_not_found. */
  async enter(code: string, digits: string): Promise<{ groupDigits: string; isNew: boolean }> {
    const groupDigits = groupOfCode(code);
    let isNew = false;
    const group =
      groupDigits === undefined
        ? undefined
        : await changeRecord(this.#redis, groupOf(groupDigits), (known) => {
            const isIn = known.participants.some((participant) => participant.digits === digits);
            isNew = known.inviteCode === code && !isIn;
            return isNew
              ? { ...known, participants: [...known.participants, { digits, admin: null }] }
              : known;
          });
    if (groupDigits === undefined || group?.inviteCode !== code) {
      throw new GatewayError('group_not_found', 'inviteCode: this code is no longer valid');
    }
    return { groupDigits, isNew };
  }

  /** Removes a member; if it is the owner, deletes the group. */
  async leave(groupDigits: string, digits: string): Promise<void> {
    const group = await this.find(groupDigits);
    const owner = group?.participants.find(({ admin }) => admin === 'superadmin')?.digits;
    if (owner === digits) {
      await this.#redis.hdel(GROUPS, groupDigits);
      return;
    }
    await changeRecord(this.#redis, groupOf(groupDigits), (known) => ({
      ...known,
      participants: known.participants.filter((participant) => participant.digits !== digits),
    }));
  }
}

export function groupNotFound(field: string): GatewayError {
  return new GatewayError('group_not_found', `${field}: the instance is in no group with this JID`);
}
