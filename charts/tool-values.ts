// Chart values of the services behind tools.
import { z } from 'zod';
import { labels, name, allowEmpty, port, quantity, workload } from './value-kinds.ts';

const serviceAddress = {
  enabled: z.boolean().default(false).describe('Run this service with the release.'),
  url: allowEmpty(z.string().regex(/^https?:\/\//))
    .default('')
    .describe('Base URL of a service that runs elsewhere, used if enabled is false.'),
  namespaceLabels: labels
    .default({})
    .describe(
      'Labels of the namespace of that service, if it is inside the cluster. If empty, it is on the public internet, on port 80, 443, 8080 or 8443.',
    ),
  port: port.default(80).describe('TCP port of its pods, if it is inside the cluster.'),
  offBecause: z
    .string()
    .max(300)
    .default('')
    .describe('Why it is off, for callers to read in GET /t, if it is neither enabled nor has a url.'),
};

/** Like 250m of CPU and 512Mi of memory. */
type Share = readonly [cpu: string, memory: string];

/** Fields of a service behind tools: an image that runs beside the API, or the address of one elsewhere. */
const backingService = (image: string, [cpu, memory]: Share, maximum: Share) => ({
  ...serviceAddress,
  image: z.string().default(image).describe('Image of the service.'),
  replicas: workload.replicas.default(1),
  resources: workload.resources.default({ requests: { cpu, memory }, limits: { cpu: maximum[0], memory: maximum[1] } }),
});

export const tools = z.strictObject({
  searxng: z
    .strictObject({
      ...backingService('docker.io/searxng/searxng:2026.11.2-cccbc9e15', ['100m', '256Mi'], ['1', '1Gi']),
      secretKeySecret: allowEmpty(name)
        .default('')
        .describe('Secret whose key `secret` is the secret key of SearXNG. If empty, one is created once and kept.'),
    })
    .prefault({})
    .describe('SearXNG, for web_search and deep_research. It can reach the public internet.'),
  gotenberg: z
    .strictObject({
      ...backingService('docker.io/gotenberg/gotenberg:8.36.0', ['250m', '512Mi'], ['2', '3Gi']),
      proxy: z
        .strictObject(workload)
        .prefault({
          replicas: 1,
          resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { cpu: '1', memory: '512Mi' } },
        })
        .describe('The guarded proxy, which is the only way for its Chromium to reach the web.'),
    })
    .prefault({})
    .describe('Gotenberg, for convert_to_pdf and screenshot. It can reach only its proxy.'),
  languagetool: z
    .strictObject({
      ...backingService('docker.io/erikvl87/languagetool:6.8', ['100m', '1Gi'], ['2', '2Gi']),
      heap: quantity.default('1Gi').describe('Maximum heap size of Java, below the memory limit.'),
    })
    .prefault({})
    .describe('LanguageTool, for check_grammar in languages other than English. It has no network access.'),
  speech: z
    .strictObject({
      ...backingService('ghcr.io/speaches-ai/speaches:0.9.0-rc.3-cpu', ['250m', '1Gi'], ['4', '4Gi']),
      model: z
        .string()
        .min(1)
        .default('Systran/faster-whisper-small')
        .describe('Speech recognition model; also used if url is set.'),
      modelClaim: allowEmpty(name)
        .default('')
        .describe(
          'PersistentVolumeClaim with the model, laid out as a Hugging Face cache. If empty, each pod downloads the model before it starts, and can reach the public internet on port 443.',
        ),
      modelInImage: z
        .boolean()
        .default(false)
        .describe('The image holds the model: nothing is downloaded, and the pod has no network access.'),
    })
    .prefault({})
    .describe('A speech server, for transcribe_audio. It can reach only the download of its model.'),
  pdftranslator: z
    .strictObject(backingService('', ['250m', '1Gi'], ['2', '4Gi']))
    .prefault({})
    .describe(
      'The PDF translator, for translate_pdf. Its image is built from localnode/images/pdf-translator. It has no network access.',
    ),
});
