// What can be done with a cluster on which Moorage runs, and what `up` prints at its end.
import { httpsUrl, type GatewayPorts } from '../localnode/node/gateway/ports.ts';
import { node } from '../localnode/node/settings.ts';
import { paths } from '../localnode/paths.ts';
import { formatElapsed, say } from './report.ts';

export interface Target {
  up: () => Promise<void>;
  down: () => Promise<void>;
  /** Prints what is there; returns what is wrong. */
  status: () => Promise<string[]>;
}

/** Prints the addresses of a local cluster. `begun`: when `up` was called, in milliseconds since 1970. */
export function sayUp(begun: number, ports: GatewayPorts): void {
  say(`
Moorage is up after ${formatElapsed(Date.now() - begun)}.

  base URL      ${httpsUrl(node.baseDomain, ports)}
  sample app    ${httpsUrl(`hello.${node.appsDomain}`, ports)}/
  kubeconfig    ${paths.kubeconfig}
  certificate   ${paths.authority}

Try: curl --cacert ${paths.authority} ${httpsUrl(`hello.${node.appsDomain}`, ports)}/
     npm run submit -- ./folder-with-an-app
`);
}
