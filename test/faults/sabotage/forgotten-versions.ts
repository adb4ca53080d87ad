/** Sabotage of a worker: of the parts of a file it never learns which version they belong to. */
import { createRequire } from 'node:module';

/** Before anybody imports it: names of a CommonJS module are bound when it is imported first. */
const undici = createRequire(import.meta.url)('undici');
const { request } = undici;
undici.request = async (...args: unknown[]) => {
  const answer = await request(...args);
  if (answer.statusCode === 206) delete answer.headers.etag;
  return answer;
};
