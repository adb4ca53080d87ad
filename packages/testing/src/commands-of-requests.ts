/**
 * Which commands to Redis a request shares its budget with
 * (packages/kit/src/redis/request-budget.ts), counted while routes are walked. A command that has
 * lost its request waits for itself.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
import { RequestBudget } from 'soundpost-kit/redis/request-budget';

interface Counted {
  /** Requests that were handled. */
  requests: number;
  /** Commands in the budget of their request. */
  ofRequests: number;
  /** Names, with their first key, of those that no request is known for: background work alone. */
  readonly others: Set<string>;
  stop(): void;
}

const isKey = (argument: string): boolean => argument.startsWith(KEY_PREFIX);

/** Counts from now on, in this process. */
export function commandsOfRequests(): Counted {
  const { run, add } = RequestBudget.prototype;
  const inRequest = new AsyncLocalStorage<true>();
  const counted: Counted = {
    requests: 0,
    ofRequests: 0,
    others: new Set(),
    stop() {
      Object.assign(RequestBudget.prototype, { run, add });
    },
  };
  RequestBudget.prototype.run = function <Result>(this: RequestBudget, handle: () => Result): Result {
    counted.requests += 1;
    return run.call(this, () => inRequest.run(true, handle)) as Result;
  };
  RequestBudget.prototype.add = function (this: RequestBudget, command, ms): void {
    if (inRequest.getStore()) counted.ofRequests += 1;
    else counted.others.add(`${command.name} ${command.args.map(String).find(isKey) ?? ''}`);
    add.call(this, command, ms);
  };
  return counted;
}
