// The gateway of `npm run up`, as its manifest says, with something wherever `up` puts a value.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { paths } from '../../../localnode/paths.ts';
import { findNamed, object, type Rendered } from '../chart.ts';

/** Its Deployment. */
export function gatewayDeployment(): Rendered {
  const manifest = readFileSync(join(paths.root, 'localnode/manifests/traefik.yaml'), 'utf8')
    .replaceAll('@HOST_ADDRESS@', '127.0.0.1')
    .replaceAll('@HTTP_PORT@', '80')
    .replaceAll('@HTTPS_PORT@', '443')
    .replaceAll(/@[A-Z]+:[a-z]+@/g, 'image')
    .replaceAll(/@[A-Z_]+@/g, '1');
  const objects = parseAllDocuments(manifest).map((document) => object.parse(document.toJS()));
  return findNamed(objects, 'Deployment', 'traefik');
}
