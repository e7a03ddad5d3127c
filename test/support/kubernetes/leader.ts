// A process that stands for election and says on stdout when it leads: to be killed by the test.
import { createClient, createLeaderElection, readFileConnection } from '../../../lib/kubernetes/index.ts';

const [kubeconfig = '', namespace = '', identity = ''] = process.argv.slice(2);
const client = createClient(await readFileConnection(kubeconfig));
const ending = new AbortController();
process.on('SIGTERM', () => {
  ending.abort();
});
const onLost = (reason: string): void => {
  process.stdout.write(`lost: ${reason}\n`);
};
await createLeaderElection({
  client,
  namespace,
  name: 'operator',
  identity,
  onLost,
  onAcquired: () => process.stdout.write('leads\n'),
}).run(ending.signal);
client.close();
