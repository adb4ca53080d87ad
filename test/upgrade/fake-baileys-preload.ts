/** Loaded before a gateway begins, of either edition: it finds the fake of WhatsApp where it looks for the package `baileys`. */
import { registerHooks } from 'node:module';

const FAKE = new URL('./fake-baileys.ts', import.meta.url).href;
const OF_TESTS = new URL('../', import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    const isAsked = specifier === 'baileys' && !context.parentURL?.startsWith(OF_TESTS);
    return next(isAsked ? FAKE : specifier, context);
  },
});

// Already here: Baileys is large, and a gateway that was busy with it on a slow machine would miss what Redis answers.
await import(FAKE);
