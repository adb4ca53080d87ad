// @module-tag prosody
// @module-tag slixmpp
/** The contract suite on XMPP: a real Prosody, and clients of another implementation on the other side. */
import { describeGateway } from '../../contract/gateway-suite.ts';
import { openXmpp } from './xmpp-peers.ts';

describeGateway('xmpp', openXmpp);
