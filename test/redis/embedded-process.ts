/** A process with an embedded Redis, to be killed: prints the address, then stays. */
import { startEmbeddedRedis } from 'soundpost-kit/redis/embedded';

const [folder = '', ...launcher] = process.argv.slice(2);
const redis = await startEmbeddedRedis({ folder, launcher });
process.once('SIGTERM', () => redis.close());
process.stdout.write(`${redis.url}\n`);
