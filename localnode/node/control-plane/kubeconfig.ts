// Writes kubeconfig files: for the person at the keyboard and for each component.
import { readFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { writeText } from '../../files.ts';

export interface KubeconfigSource {
  server: string;
  /** PEM files. */
  authority: string;
  certificate: string;
  key: string;
  context: string;
  namespace?: string;
}

/** Writes the file, readable by its owner only, with all certificates inside it. Returns its text. */
export async function writeKubeconfig(path: string, source: KubeconfigSource): Promise<string> {
  const [authority, certificate, key] = await Promise.all(
    [source.authority, source.certificate, source.key].map((file) => readFile(file)),
  );
  const text = stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': source.context,
      clusters: [
        {
          name: source.context,
          cluster: { server: source.server, 'certificate-authority-data': authority?.toString('base64') },
        },
      ],
      users: [
        {
          name: source.context,
          user: {
            'client-certificate-data': certificate?.toString('base64'),
            'client-key-data': key?.toString('base64'),
          },
        },
      ],
      contexts: [
        {
          name: source.context,
          context: {
            cluster: source.context,
            user: source.context,
            ...(source.namespace === undefined ? {} : { namespace: source.namespace }),
          },
        },
      ],
    },
    { lineWidth: 0 },
  );
  await writeText(path, text, 0o600);
  return text;
}
