/** Sabotage of a worker: it does not hear of Retry-After, and gives each try at a webhook another id. */
import { createRequire } from 'node:module';

/** Before anybody imports it: names of a CommonJS module are bound when it is imported first. */
const undici = createRequire(import.meta.url)('undici');
const { request } = undici;
let tries = 0;
undici.request = async (url: URL, options: { headers: Record<string, string> }) => {
  const id = options.headers['webhook-id'];
  if (id !== undefined) options.headers['webhook-id'] = `${id}-${tries++}`;
  const answer = await request(url, options);
  delete answer.headers['retry-after'];
  return answer;
};
