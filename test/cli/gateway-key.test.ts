import { ServiceHome, soundpost } from 'soundpost-testing/service';
import { expect, it } from 'vitest';
import { SECRET_KEY, useService } from '../api/api-fixture.ts';

const service = useService({ parts: ['gateway'], environment: { GATEWAY_API_KEY: '' } });

it('keys gateway prints the key that the gateway takes', async () => {
  const home = await ServiceHome.make({ SECRET_KEY });
  try {
    const command = home.run([...soundpost, 'keys', 'gateway']);
    expect(await command.exited).toBe(0);
    const answer = await service().call('GET', `${service().gatewayUrl}/instance/fetchInstances`, {
      key: null,
      headers: { apikey: command.output().trim() },
    });
    expect(answer.status).toBe(200);
  } finally {
    await home.remove();
  }
});
