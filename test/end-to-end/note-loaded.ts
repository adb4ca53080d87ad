/** Loaded before everything else: writes down, in LOADED_MODULES, the address of each module that is loaded after it. */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const list = process.env.LOADED_MODULES;

if (list !== undefined && isMainThread) {
  registerHooks({
    load(url, context, next) {
      appendFileSync(list, `${url}\n`);
      return next(url, context);
    },
  });
}
