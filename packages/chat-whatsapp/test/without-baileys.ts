/** Loaded before a process begins: in it the package `baileys` is not installed. */
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, next) {
    return next(specifier === 'baileys' ? 'baileys-that-nobody-installed' : specifier, context);
  },
});
