import { linkIsCut } from './link-cut.ts';

linkIsCut('silent', 30);
