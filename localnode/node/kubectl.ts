// kubectl against the cluster of the one-machine node.
import { binary } from '../binaries/build.ts';
import { kubectlFor, type Kubectl } from '../kubectl.ts';
import { paths } from '../paths.ts';

export const nodeKubectl: Kubectl = kubectlFor(binary('kubernetes', 'kubectl'), paths.kubeconfig);
