/** A gateway in a process of its own, so that a test can kill it: started by fork with its setting as JSON. */

import { startGateway } from '../../src/gateway/start.ts';
import { type GatewaySetting, gatewayOptions } from './gateway-fixture.ts';

const setting: GatewaySetting = JSON.parse(process.argv[2] ?? '');
const gateway = await startGateway(await gatewayOptions(setting));
process.once('SIGTERM', async () => {
  await gateway.close();
  process.exit(0);
});
process.send?.({ port: gateway.port });
