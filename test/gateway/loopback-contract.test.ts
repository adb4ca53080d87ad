/** The contract suite on the gateway's own network. */
import { describeGateway } from '../contract/gateway-suite.ts';
import { openLoopback } from './loopback-peers.ts';

describeGateway('loopback', openLoopback);
