/** Proxies in front of a server that is not told of them. */
import type { IncomingMessage } from 'node:http';
import type { Logger } from '../observe/logger.ts';

/**
 * Says once that requests were forwarded while no proxy is trusted: all callers have the proxy's address then, and are limited as one.
 * @param trustProxy proxies in front whose forwarded address is believed
 */
export function noticeForwarded(trustProxy: number, logger: Logger): (request: IncomingMessage) => void {
  let isSilent = trustProxy > 0;
  return ({ headers }) => {
    if (isSilent || (headers['x-forwarded-for'] === undefined && headers.forwarded === undefined)) return;
    isSilent = true;
    logger.warn(
      'a request was forwarded, and TRUST_PROXY is 0: if proxies stand in front, set it to their number, or all callers count as one address',
    );
  };
}
