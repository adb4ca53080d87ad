/** What of the environment is refused, in words. */
import { expect, it } from 'vitest';
import { ConfigurationError, loadConfig } from '../../src/process/config.ts';

it('every fault is told at once, also one of escapes', () => {
  const environment = { OTEL_EXPORTER_OTLP_HEADERS: 'x=%ff', LOG_LEVEL: 'loud' };
  expect(() => loadConfig(environment)).toThrow(ConfigurationError);
  expect(() => loadConfig(environment)).toThrow(
    /2 fault.*OTEL_EXPORTER_OTLP_HEADERS: a percent sign.*LOG_LEVEL: |2 fault.*LOG_LEVEL: .*OTEL_EXPORTER_OTLP_HEADERS: a percent sign/s,
  );
  expect(loadConfig({ OTEL_EXPORTER_OTLP_HEADERS: 'x=a%20b, y=1' }).OTEL_EXPORTER_OTLP_HEADERS).toEqual({
    x: 'a b',
    y: '1',
  });
});

it('addresses that fetch would refuse with all of their text hold no password', () => {
  for (const variable of ['GATEWAY_URL', 'SOUNDPOST_SERVER']) {
    const refused = (): unknown =>
      loadConfig({ [variable]: 'http://me:s3cret@a.example', GATEWAY_API_KEY: 'k'.repeat(32) });
    expect(refused).toThrow(`${variable}: must hold no name and no password`);
    expect(refused).not.toThrow(/s3cret/);
  }
});

it('a SECRET_KEY of fewer than 32 bytes is refused', () => {
  expect(() => loadConfig({ SECRET_KEY: 'k'.repeat(31) })).toThrow('SECRET_KEY: must have at least 32 bytes');
  expect(loadConfig({ SECRET_KEY: 'k'.repeat(32) }).SECRET_KEY).toBe('k'.repeat(32));
});
